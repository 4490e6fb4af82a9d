package cel_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/cel"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/limit"
)

// FuzzMutate compiles any expression as a variable and as a patch of both kinds,
// and evaluates what compiles: nothing may panic, hang, or modify the object.
func FuzzMutate(f *testing.F) {
	for _, seed := range []string{
		"Object{spec: Object.spec{containers: object.spec.containers.map(c, Object.spec.containers{name: c.name, image: 'x/' + c.image})}}",
		"Object{metadata: Object.metadata{labels: {'a': variables.x}, ?annotations: optional.none()}}",
		"[JSONPatch{op: 'add', path: '/spec/' + jsonpatch.escapeKey('a/b'), value: [Object.spec{a: 1}, Object.spec{}]}]",
		"[JSONPatch{op: 'test', path: '/kind', value: dyn(null)}, JSONPatch{op: 'replace', path: '', value: {}}]",
		"[JSONPatch{op: 'copy', from: '', path: '/spec/a'}, JSONPatch{op: 'move', from: '/spec', path: '/spec/a'}]",
		"object.metadata.labels.transformMap(k, v, v + k)", "[[1]] + [[object]]", "timestamp('2020-01-01T00:00:00Z')", "1.0 / 0.0", "b'\\x00'",
		"has(object.spec.x) && !object.spec.containers.exists(c, c.name in ['a']) || object.metadata.name == 'x'",
	} {
		f.Add(seed)
	}
	environment, err := cel.NewEnvironment(cel.Options{Params: true, Authorizer: true, PatchTypes: true})
	if err != nil {
		f.Fatal(err)
	}
	in := input(f)
	in.Explain, in.ReplaceAtomic = true, true
	before := runtime.DeepCopyJSON(in.Object)
	f.Fuzz(func(t *testing.T, expression string) {
		s := environment.NewScope(nil)
		ctx, done := limit.Rule(t.Context(), nil)
		defer done()
		if err := s.Variable("x", expression); err != nil && err.Error() == "" {
			t.Error("an error without a text")
		}
		if x, err := s.Condition(expression); err == nil {
			if s.Evaluate(ctx, in, cel.MatchBudget).Unmet(x).Error() == "" {
				t.Error("a reason without a text")
			}
		}
		for _, text := range []string{expression, "Object{spec: variables.x, metadata: Object.metadata{name: 'x'}}", "[JSONPatch{op: 'add', path: '/spec/x', value: variables.x}]"} {
			merged, err := s.ApplyConfiguration(text)
			if err == nil {
				_, _ = s.Evaluate(ctx, in, cel.MutationBudget).Mutate(merged, builtin)
			}
			patched, err := s.JSONPatch(text)
			if err == nil {
				_, _ = s.Evaluate(ctx, in, cel.MutationBudget).Mutate(patched, builtin)
			}
		}
		if diff := cmp.Diff(before, in.Object); diff != "" {
			t.Fatal("the object is modified:\n" + diff)
		}
	})
}
