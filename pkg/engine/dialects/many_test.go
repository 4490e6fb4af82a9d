package dialects_test

import (
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubectl-mutate/kubectl-mutate/internal/conformance"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/dialects"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/evaluation"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/snapshot"
)

// celPolicy is a policy with mutations for ConfigMaps, in one of two languages.
func celPolicy(kind, name, more string, mutations ...string) string {
	group := map[string]string{"MutatingAdmissionPolicy": "admissionregistration.k8s.io/v1", "MutatingPolicy": "policies.kyverno.io/v1alpha1"}[kind]
	return fmt.Sprintf(`{"apiVersion": %q, "kind": %q, "metadata": {"name": %q}, "spec": {%s "reinvocationPolicy": "Never", "mutations": [%s],
		"matchConstraints": {"resourceRules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE", "UPDATE"], "resources": ["configmaps"]}]}}}`,
		group, kind, name, more, strings.Join(mutations, ", "))
}

// celMutation is an apply configuration, or a JSON patch if it is a list.
func celMutation(expression string) string {
	if strings.HasPrefix(expression, "[") {
		return fmt.Sprintf(`{"patchType": "JSONPatch", "jsonPatch": {"expression": %q}}`, expression)
	}
	return fmt.Sprintf(`{"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": %q}}`, expression)
}

func objectOf(t testing.TB, text string) *unstructured.Unstructured {
	t.Helper()
	return conformance.ReadObject(t, []byte(text))
}

// evaluated is the change of one object by policies.
func evaluated(t *testing.T, object *unstructured.Unstructured, policies []string) *engine.Change {
	t.Helper()
	documents := make([]engine.Document, len(policies))
	for i, text := range policies {
		documents[i] = engine.NewDocument(objectOf(t, text), "")
	}
	var programs []engine.Program
	for _, d := range dialects.All() {
		c := engine.Compilation{Annotate: true, Warn: func(engine.CompileError) {}}
		for _, document := range documents {
			if d.Accepts(document.Key.GroupKind) == engine.Policy {
				c.Documents = append(c.Documents, document)
			}
		}
		if len(c.Documents) > 0 {
			program, _ := d.Compile(c) // mutators may contradict each other
			programs = append(programs, program)
		}
	}
	objects := []*unstructured.Unstructured{object}
	if strings.Contains(strings.Join(policies, ""), "'secrets'") {
		objects = append(objects, objectOf(t, `{"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s", "namespace": "n"}, "data": {"k": "dg=="}}`))
	}
	if strings.Contains(policies[0], "targets") {
		objects = append(objects, objectOf(t, strings.Replace(plainConfigMap, `"c"`, `"t"`, 1)))
	}
	s, err := snapshot.Load(engine.Documents(objects...), snapshot.Options{})
	if err != nil {
		t.Fatal(err)
	}
	w := &engine.World{Reader: s, Mapper: s.Mapper(), Memo: &engine.Memo{}}
	var out *engine.Change
	e, source := evaluation.New(programs, w, evaluation.Options{}), s.Source(engine.Scope{ClusterScoped: true})
	if err := e.Prepare(t.Context(), source); err != nil {
		t.Fatal(err)
	}
	err = e.Run(t.Context(), source, func(c *engine.Change) error {
		if c.Subject.Name == object.GetName() {
			out = c
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

const plainConfigMap = `{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c", "namespace": "n", "labels": {"a": "1"},
	"finalizers": ["example.com/a"]}, "data": {"a": "b"}}`
