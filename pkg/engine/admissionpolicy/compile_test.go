package admissionpolicy_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"

	"github.com/kubectl-mutate/kubectl-mutate/internal/conformance"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/admissionpolicy"
)

// documents reads YAML as policies of a file, or of the cluster where a document
// says so in an annotation.
func documents(t testing.TB, text []byte) []engine.Document {
	t.Helper()
	decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(text), 4096)
	var out []engine.Document
	for {
		u := &unstructured.Unstructured{}
		err := decoder.Decode(&u.Object)
		if errors.Is(err, io.EOF) {
			return out
		}
		if err != nil {
			t.Fatal(err)
		}
		origin := "policy.yaml"
		if o, ok := u.GetAnnotations()["origin"]; ok {
			origin = o
		}
		out = append(out, engine.NewDocument(u, origin))
	}
}

// A case is a file of testdata/compile: policy.yaml, what is wrong with it (want),
// and the rules that are left.
func TestCompile(t *testing.T) {
	conformance.Golden(t, "testdata/compile", *update, func(t *testing.T, sections map[string]string) string {
		return compiled(t, []byte(sections["policy.yaml"]))
	})
}

func compiled(t *testing.T, policies []byte) string {
	t.Helper()
	var b strings.Builder
	program, err := admissionpolicy.New().Compile(engine.Compilation{
		Documents: documents(t, policies),
		Warn:      func(e engine.CompileError) { b.WriteString("warning " + e.Error() + "\n") },
	})
	if err != nil {
		b.WriteString("error " + strings.ReplaceAll(err.Error(), "\npolicy.yaml", "\nerror policy.yaml") + "\n")
	}
	for _, r := range program.Rules() {
		b.WriteString("rule " + strings.TrimSpace(r.Policy+" "+r.Via) + "\n")
	}
	return b.String()
}

func TestSelections(t *testing.T) {
	for name, c := range map[string]struct {
		constraints string
		want        []engine.Selection
	}{
		"a version is asked for, others count too": {
			"{resourceRules: [{apiGroups: [apps], apiVersions: [v1], operations: [UPDATE], resources: [deployments, deployments/scale]}]}",
			[]engine.Selection{{Group: "apps", Kind: "*", Resource: "deployments", ReadAs: "v1"}},
		},
		"exact versions": {
			"{matchPolicy: Exact, resourceRules: [{apiGroups: [g], apiVersions: [v1, v2], operations: ['*'], resources: ['*/*']}]}",
			[]engine.Selection{{Group: "g", Version: "v1", Kind: "*", Resource: "*"}, {Group: "g", Version: "v2", Kind: "*", Resource: "*"}},
		},
		"any version, names and no labels of the binding": {
			"{resourceRules: [{apiGroups: [''], apiVersions: ['*'], operations: ['*'], resources: [pods/*], resourceNames: [a, b]}]}",
			[]engine.Selection{{Kind: "*", Resource: "pods", Name: "a"}, {Kind: "*", Resource: "pods", Name: "b"}},
		},
		"nothing but subresources": {
			"{resourceRules: [{apiGroups: [''], apiVersions: [v1], operations: ['*'], resources: [pods/status]}]}",
			nil,
		},
	} {
		t.Run(name, func(t *testing.T) {
			text := "{apiVersion: admissionregistration.k8s.io/v1, kind: MutatingAdmissionPolicy, metadata: {name: p}, spec: {matchConstraints: " +
				c.constraints + ", reinvocationPolicy: Never, mutations: [{patchType: JSONPatch, jsonPatch: {expression: '[JSONPatch{op: \"remove\", path: \"/a\"}]'}}]}}"
			program, err := admissionpolicy.New().Compile(engine.Compilation{Documents: documents(t, []byte(text))})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, program.Selections()); diff != "" {
				t.Error("(-want +got):\n" + diff)
			}
		})
	}
}

// unreadable is a cluster that refuses to read anything.
type unreadable struct{ engine.Reader }

func (unreadable) Get(context.Context, engine.ObjectKey) (*unstructured.Unstructured, error) {
	return nil, errors.New("forbidden")
}

type steps []engine.Step

func (*steps) Wants(engine.Outcome) bool { return true }

func (s *steps) Step(step engine.Step) { *s = append(*s, step) }

// A server can always read Namespaces: that this run may not says nothing about the object.
func TestEvaluateNamespaceUnreadable(t *testing.T) {
	archive, err := txtar.ParseFile("testdata/namespace-left-out.txtar")
	if err != nil {
		t.Fatal(err)
	}
	policy := bytes.Replace(archive.Files[0].Data, []byte("kubernetes.io/metadata.name: shop"), []byte("tier: front"), 1)
	program, err := admissionpolicy.New().Compile(engine.Compilation{Documents: documents(t, policy)})
	if err != nil {
		t.Fatal(err)
	}
	object := documents(t, archive.Files[1].Data)[0].Object()
	var got steps
	_, err = program.Evaluate(t.Context(), engine.Target{Key: engine.KeyOf(object), Object: object}, &engine.World{Reader: unreadable{}}, &got)
	if err != nil || len(got) != 1 || got[0].Outcome != engine.Unsupported || got[0].Err.Error() != "namespaceSelector: Namespace shop cannot be read: forbidden" {
		t.Errorf("got %+v, %v", got, err)
	}
}
