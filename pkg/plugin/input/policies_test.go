package input

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
)

// accepts is a dialect with a policy kind and an input kind.
func accepts(kind schema.GroupKind) engine.Role {
	switch kind {
	case schema.GroupKind{Group: "example.io", Kind: "Rule"}:
		return engine.Policy
	case schema.GroupKind{Group: "example.io", Kind: "Exception"}:
		return engine.Input
	}
	return engine.Foreign
}

// load returns a line per warning, then one per document.
func load(t *testing.T, s Policies) (string, error) {
	t.Helper()
	var lines []string
	s.Accepts = accepts
	s.Warn = func(origin, text string) { lines = append(lines, "warning "+origin+": "+text) }
	s.Note = func(origin, text string) { lines = append(lines, "note "+origin+": "+text) }
	documents, broken, err := s.Load(context.Background())
	slices.Sort(lines)
	for _, d := range documents {
		lines = append(lines, d.Origin+": "+describe(d))
	}
	return strings.Join(lines, "\n"), errors.Join(append(broken, err)...)
}

func installed(names ...string) func(context.Context) ([]engine.Document, []error) {
	var documents []engine.Document
	for _, name := range names {
		documents = append(documents, engine.NewDocument(&unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "example.io/v1", "kind": "Rule", "metadata": map[string]any{"name": name},
		}}, "cluster"))
	}
	return func(context.Context) ([]engine.Document, []error) { return documents, nil }
}

func stdin(text string) *Reader { return &Reader{Stdin: strings.NewReader(text)} }

func TestPoliciesLoadDirectory(t *testing.T) {
	archive, err := txtar.ParseFile("testdata/policies/policies.txtar")
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir(t.TempDir())
	var want string
	for _, file := range archive.Files {
		if file.Name == "want" {
			want = strings.TrimSpace(string(file.Data))
			continue
		}
		if err := os.MkdirAll(filepath.Dir(file.Name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file.Name, file.Data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := load(t, Policies{Paths: []string{"policies"}, Reader: new(Reader)})
	if err != nil {
		t.Error(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error("(-want +got):\n" + diff)
	}
}

func TestPoliciesLoadFileReplacesInstalled(t *testing.T) {
	got, err := load(t, Policies{
		Paths: []string{"-"}, Reader: stdin("{apiVersion: example.io/v1, kind: Rule, metadata: {name: b}}"),
		FromCluster: installed("a", "b", "c"),
	})
	if err != nil {
		t.Error(err)
	}
	want := "note stdin:1: Rule b is used instead of the one that is installed in the cluster\n" +
		"cluster: Rule a\ncluster: Rule c\nstdin:1: Rule b"
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error("(-want +got):\n" + diff)
	}
}

func TestPoliciesLoadNothing(t *testing.T) {
	namespace := "{apiVersion: v1, kind: Namespace, metadata: {name: a}}"
	cases := []struct {
		name   string
		source Policies
		want   string
	}{
		{"nothing typed", Policies{}, "no policy: use -p FILE, DIRECTORY, URL or - for policies to evaluate, or --from-cluster for those that are installed"},
		{"no policy in the files", Policies{Paths: []string{"-"}, Reader: stdin(namespace)}, "no policy in -: use --from-cluster for those that are installed"},
		{"no policy anywhere", Policies{Paths: []string{"-"}, Reader: stdin(namespace), FromCluster: installed()}, "no policy in - or in the cluster"},
		{"no policy installed", Policies{Reader: stdin(""), FromCluster: installed()}, "no policy is installed in the cluster: use -p FILE for one that is not"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			if _, err := load(t, c.source); !errors.Is(err, ErrNoPolicy) || err.Error() != c.want {
				t.Errorf("error %q, want %q", err, c.want)
			}
		})
	}
}

func TestPoliciesLoadBroken(t *testing.T) {
	got, err := load(t, Policies{
		Paths:  []string{"-"},
		Reader: stdin("{apiVersion: example.io/v1, kind: Rule, metadata: {name: a}}\n---\na: [\n"),
	})
	if got != "stdin:1: Rule a" {
		t.Errorf("read %q", got)
	}
	var broken *Error
	if !errors.As(err, &broken) || broken.Line != 3 {
		t.Errorf("error %v, want one of line 3", err)
	}
}

func TestPoliciesLoadClusterError(t *testing.T) {
	lost, refused := errors.New("connection lost"), errors.New("forbidden")
	rules, exceptions := &engine.UnreadableError{What: "rules.example.io", Err: refused}, &engine.UnreadableError{What: "exceptions.example.io", Err: refused}
	for _, c := range []struct {
		errs []error
		want string
	}{
		{[]error{lost}, "reading the policies of the cluster: connection lost"},
		{[]error{rules}, "reading the policies of the cluster: cannot read rules.example.io: forbidden"},
		{[]error{rules, exceptions}, "reading the policies of the cluster: cannot read rules.example.io, exceptions.example.io: forbidden"},
	} {
		_, err := load(t, Policies{FromCluster: func(context.Context) ([]engine.Document, []error) { return nil, c.errs }})
		if !errors.Is(err, c.errs[0]) || err.Error() != c.want {
			t.Errorf("error %q, want %q", err, c.want)
		}
	}
}
