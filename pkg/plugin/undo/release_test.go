package undo

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/yaml"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/diff"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/cluster"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/write"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/write/journal"
)

// flaky holds a Deployment in which a run owns nothing but the key of a container. It
// answers with errors before it answers.
type flaky struct {
	write.Server
	reads, writes []error
	read, written int
	quiet         bool // the last write was
}

func (f *flaky) Get(context.Context, engine.ObjectKey) (*unstructured.Unstructured, error) {
	f.read++
	u := &unstructured.Unstructured{}
	err := yaml.Unmarshal([]byte(`{apiVersion: apps/v1, kind: Deployment,
  metadata: {name: web, namespace: shop, uid: u, resourceVersion: "7", managedFields: [{manager: run, operation: Apply, apiVersion: apps/v1,
    fieldsV1: {"f:spec": {"f:template": {"f:spec": {"f:containers": {'k:{"name":"app"}': {".": {}, "f:name": {}}}}}}}}]},
  spec: {template: {spec: {containers: [{name: app, image: a}]}}}}`), &u.Object)
	return u, errors.Join(err, pop(&f.reads))
}

func (f *flaky) Patch(_ context.Context, _ engine.ObjectKey, p cluster.Patch) (*unstructured.Unstructured, error) {
	f.written++
	f.quiet = p.Quiet
	return nil, pop(&f.writes)
}

func pop(errs *[]error) error {
	if len(*errs) == 0 {
		return nil
	}
	err := (*errs)[0]
	*errs = (*errs)[1:]
	return err
}

// What the Server has repeated for long enough is not repeated here: an undo would wait
// for a server that is gone once more for each object.
func TestReleaseBeginsAgainOnlyAfterItsOwnWrite(t *testing.T) {
	gone := apierrors.NewServiceUnavailable("gone")
	busy := apierrors.NewConflict(schema.GroupResource{Resource: "deployments"}, "web", nil)
	for name, c := range map[string]struct {
		reads, writes []error
		read, written int
		want          error
	}{
		"an answer":                {nil, nil, 1, 1, nil},
		"an answer that is lost":   {nil, []error{gone}, 2, 2, nil},
		"another client":           {nil, []error{busy, busy}, 3, 3, nil},
		"a refusal":                {nil, []error{apierrors.NewBadRequest("no")}, 1, 1, apierrors.NewBadRequest("no")},
		"a read without an answer": {[]error{gone}, nil, 1, 0, gone},
		"no end":                   {nil, []error{gone, gone, gone, gone}, 3, 3, gone},
	} {
		t.Run(name, func(t *testing.T) {
			s := &flaky{reads: c.reads, writes: c.writes}
			r := Options{
				Header:   journal.Header{FieldManager: "run"},
				Executor: &write.Executor{Verifier: write.Verifier{Writer: &write.Writer{Server: s, Patience: &cluster.Patience{Backoff: wait.Backoff{Steps: 3}}}, ErrOut: io.Discard}},
			}
			err := r.releaseOne(t.Context(), &Object{Object: engine.ObjectKey{Namespace: "shop", Name: "web"}})
			if s.read != c.read || s.written != c.written || (err == nil) != (c.want == nil) {
				t.Errorf("%d reads, %d writes, %v", s.read, s.written, err)
			}
		})
	}
}

// What a run did not apply, it owns no keys in.
func TestReleaseReadsOnlyWhatWasApplied(t *testing.T) {
	writes := func(withheld bool) []Write {
		return []Write{{Partial: diff.Partial{Fields: []engine.FieldChange{{Path: fieldpath.MakePathOrDie("data", "key"), Kind: engine.Replaced, Withheld: withheld}}}}}
	}
	for name, c := range map[string]struct {
		object Object
		read   int
	}{
		"what was applied":       {Object{Applied: true, Writes: writes(false)}, 1},
		"what is not recorded":   {Object{Applied: true, Writes: writes(true)}, 1},
		"what was sent as patch": {Object{Writes: writes(false)}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			server := &flaky{}
			r := Options{
				Header: journal.Header{FieldManager: "run"}, Objects: []Object{c.object},
				Executor: &write.Executor{Verifier: write.Verifier{Concurrency: 1, Writer: &write.Writer{Server: server}, ErrOut: io.Discard}},
			}
			if err := r.release(t.Context()); err != nil || server.read != c.read {
				t.Errorf("%d reads, want %d; %v", server.read, c.read, err)
			}
			if server.written > 0 && server.quiet != c.object.Writes[0].Fields[0].Withheld {
				t.Errorf("the write is told that it holds what was made of a Secret: %t", server.quiet)
			}
		})
	}
}

// What is left of an entry once the list elements are given up of which nothing but the key is owned.
func TestWithoutKeys(t *testing.T) {
	const app, side = `"k:{\"name\":\"app\"}": {".": {}, "f:name": {}}`, `"k:{\"name\":\"side\"}": {".": {}, "f:name": {}, "f:image": {}}`
	in := func(elements string) string { return `"f:spec": {"f:containers": {` + elements + `}}` }
	const label, kept = `"f:metadata": {"f:labels": {"f:team": {}}}, `, "as it is"
	for fields, want := range map[string]string{
		in(app):                        "",
		label + in(app+", "+side):      label + in(side),
		`"f:metadata": {"f:name": {}}`: kept,
		in(side):                       kept,
		// something deeper is owned
		in(`"k:{\"name\":\"app\"}": {".": {}, "f:name": {}, "f:env": {"k:{\"name\":\"X\"}": {".": {}, "f:name": {}, "f:value": {}}}}`): kept,
	} {
		live := &unstructured.Unstructured{}
		text := `{metadata: {managedFields: [{manager: other, operation: Update, fieldsV1: {"f:spec": {}}}, {manager: run, operation: Apply, fieldsV1: {FIELDS}}]}}`
		if err := yaml.Unmarshal([]byte(strings.Replace(text, "FIELDS", fields, 1)), &live.Object); err != nil {
			t.Fatal(err)
		}
		entries, err := withoutKeys(live, "run")
		if err != nil {
			t.Fatal(err)
		}
		got := kept
		switch len(entries) {
		case 1:
			got = ""
		case 2:
			got = sorted(t, entries[1].FieldsV1.GetRawString())
			want = sorted(t, "{"+want+"}")
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", fields, diff)
		}
	}
}

func sorted(t *testing.T, text string) string {
	t.Helper()
	out, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

// staleServer answers with one version of an object after the other.
type staleServer struct {
	write.Server
	versions []string
	failed   error
	reads    int
}

func (s *staleServer) Get(context.Context, engine.ObjectKey) (*unstructured.Unstructured, error) {
	u := &unstructured.Unstructured{Object: map[string]any{}}
	u.SetResourceVersion(s.versions[min(s.reads, len(s.versions)-1)])
	s.reads++
	return u, s.failed
}

func (s *staleServer) Patch(context.Context, engine.ObjectKey, cluster.Patch) (*unstructured.Unstructured, error) {
	u := &unstructured.Unstructured{Object: map[string]any{}}
	u.SetResourceVersion("300")
	return u, nil
}

func TestFreshServerReadsNoStaleState(t *testing.T) {
	key := engine.ObjectKey{GroupKind: schema.GroupKind{Kind: "ConfigMap"}, Version: "v1", Name: "c"}
	knowing := func(s *staleServer) *freshServer {
		f := newFreshServer(s)
		f.know(key, "100")
		return f
	}
	for _, tt := range []struct {
		name     string
		versions []string
		want     string
		reads    int
	}{
		{"as the run left it", []string{"100"}, "100", 1},
		{"written by others since", []string{"101"}, "101", 1},
		{"stale twice", []string{"99", "9", "100"}, "100", 3},
		{"a server whose versions do not compare", []string{"x"}, "x", 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := &staleServer{versions: tt.versions}
			live, err := knowing(s).Get(t.Context(), key)
			if err != nil || live.GetResourceVersion() != tt.want || s.reads != tt.reads {
				t.Errorf("got %v, %v after %d reads", live, err, s.reads)
			}
		})
	}
	monotonic := knowing(&staleServer{versions: []string{"120", "110", "121"}})
	for _, want := range []string{"120", "121"} {
		if live, err := monotonic.Get(t.Context(), key); err != nil || live.GetResourceVersion() != want {
			t.Errorf("got %v, %v, want %s", live, err, want)
		}
	}
	s := &staleServer{versions: []string{"200"}}
	f := knowing(s)
	if _, err := f.Patch(t.Context(), key, cluster.Patch{}); err != nil {
		t.Fatal(err)
	}
	if _, err := f.Get(t.Context(), key); err == nil || !strings.Contains(err.Error(), "from before the run") {
		t.Errorf("a state from before its own write: %v after %d reads", err, s.reads)
	}
}

// A journal says what was made of a Secret, and is not shown. So somebody who changes it could have values
// put back that nobody sees. One that keeps no values of Secrets has none to put back; with one that does, a
// warning tells it.
func TestUnseenValuesArePutBackWithAWarning(t *testing.T) {
	const (
		configMap = `{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c", "resourceVersion": "7"}, "data": {"level": "info"}}`
		secret    = `{"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "c", "resourceVersion": "7"}, "data": {"level": "info"}}`
		level     = `"before": {"data": {"level": "evil"}}, "after": {"data": {"level": "info"}}, "fields": [{"path": "data.level", "elements": ["f:data", "f:level"], "kind": `
		other     = `"before": {"data": {"other": "evil"}}, "after": {}, "fields": [{"path": "data.other", "elements": ["f:data", "f:other"], "kind": `
	)
	for name, c := range map[string]struct {
		live, write string
		unseen      bool // and not only seen, or left alone
	}{
		"a value":                              {configMap, `{` + level + `"replaced"}]}`, false},
		"one that was made of a Secret":        {configMap, `{` + level + `"replaced", "secret": true}]}`, true},
		"one with a name made of a Secret":     {configMap, `{` + level + `"replaced", "secretFrom": 2}]}`, true},
		"one that is withheld":                 {configMap, `{` + level + `"replaced", "withheld": true}]}`, false},
		"one that is withheld, and was new":    {configMap, `{` + level + `"added", "withheld": true}]}`, true},
		"one in something that is withheld":    {configMap, `{` + level + `"replaced"}, {"path": "data", "elements": ["f:data"], "kind": "replaced", "withheld": true}]}`, true},
		"one that is removed":                  {configMap, `{"after": {"data": {"level": "info"}}, "fields": [{"path": "data.level", "elements": ["f:data", "f:level"], "kind": "added", "withheld": true}]}`, false},
		"one that the run removed":             {configMap, `{` + other + `"removed", "secret": true}]}`, true},
		"one of a Secret":                      {secret, `{` + level + `"replaced"}]}`, true},
		"one of a Secret that the run removed": {secret, `{` + other + `"removed"}]}`, true},
	} {
		for _, keeps := range []bool{false, true} {
			var live unstructured.Unstructured
			var wrote diff.Partial
			if err := json.Unmarshal([]byte(c.live), &live.Object); err != nil {
				t.Fatal(err)
			}
			if err := json.Unmarshal([]byte(c.write), &wrote); err != nil {
				t.Fatal(err)
			}
			if err := wrote.Validate(); err != nil {
				t.Fatal(err)
			}
			of := Object{Object: engine.KeyOf(&live), Writes: []Write{{Partial: wrote, ResourceVersion: "7"}}}
			r := Options{Header: journal.Header{ID: "1", Secrets: keeps}, Executor: &write.Executor{}}
			change := r.restore(t.Context(), &of, &live)
			warned := slices.Contains(change.ToShow().Steps[0].Warnings, unseen)
			refused := errors.Is(change.Steps[0].Err, errUnfounded)
			if warned != (c.unseen && keeps) || refused != (c.unseen && !keeps) || refused && change.Changed() {
				t.Errorf("%s, %t: warned %t, refused %t, changed %t", name, keeps, warned, refused, change.Changed())
			}
			text, err := json.Marshal([]any{change.ToShow().After.Object, change.After.Object})
			if err != nil {
				t.Fatal(err)
			}
			if n := strings.Count(string(text), "evil"); n == 1 && !warned {
				t.Errorf("%s, %t: written and not shown: %s", name, keeps, text)
			}
		}
	}
}
