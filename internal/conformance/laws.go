package conformance

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/diff"
)

// broken returns the laws that an answer alone breaks.
func (a *answer) broken() []error {
	var problems []error
	if a.modified != "" {
		problems = append(problems, errors.New("law: what was handed in is not modified:\n"+a.modified))
	}
	for _, c := range a.changes {
		for _, f := range c.Fields {
			if !slices.ContainsFunc(c.Steps, func(s engine.Step) bool { return s.Rule == f.Rule() && s.Outcome == engine.Changed }) {
				problems = append(problems, fmt.Errorf("law: every field has a writer: %s of %s has %q, which changed nothing", f.Path, c.Subject, f.Rule()))
			}
		}
		if diff := a.addUp(c); diff != "" {
			problems = append(problems, fmt.Errorf("law: before and fields give after: %s:\n%s", c.Subject, diff))
		}
	}
	return problems
}

// addUp returns what is different between Before with its Fields and After.
// Changes whose fields include whole elements of lists are left out: the path
// of an element does not give its place.
func (a *answer) addUp(c *engine.Change) string {
	if c.Before == nil || c.After == nil {
		return ""
	}
	sum := c.Before.DeepCopy().Object
	for _, f := range c.Fields {
		if !set(sum, f) {
			return ""
		}
	}
	if diff.Equal(sum, c.After.Object, a.typeOf(c.After.GroupVersionKind())) {
		return ""
	}
	return cmp.Diff(c.After.Object, sum)
}

// set writes one field and reports whether its path can be followed.
func set(object map[string]any, f engine.FieldChange) bool {
	above, _ := diff.Lookup(object, f.Path[:len(f.Path)-1])
	parent, isMap := above.(map[string]any)
	last := f.Path[len(f.Path)-1].FieldName
	if !isMap || last == nil || f.Kind == engine.Moved {
		return false
	}
	if f.Kind == engine.Removed {
		delete(parent, *last)
	} else {
		parent[*last] = f.To
	}
	return true
}

// repeated asks the same question again.
func (c *testCase) repeated(t testing.TB, first *answer) []error {
	t.Helper()
	second, err := c.run(t, c.live, c.world)
	if err != nil {
		return []error{fmt.Errorf("asked again: %w", err)}
	}
	say := func(a *answer) []any { return []any{a.errors(), a.trace(), copies(nil, a.ended())} }
	if diff := cmp.Diff(say(first), say(second)); diff != "" {
		return []error{errors.New("law: the same question has the same answer:\n" + diff)}
	}
	return nil
}

// idempotent evaluates the result.
func (c *testCase) idempotent(t testing.TB, first *answer) []error {
	t.Helper()
	after := map[engine.ObjectKey]*unstructured.Unstructured{}
	for _, u := range first.ended() {
		after[engine.KeyOf(u).Named()] = u
	}
	replaced := func(list []*unstructured.Unstructured) []*unstructured.Unstructured {
		out := slices.Clone(list)
		for i, u := range list {
			if is := after[engine.KeyOf(u).Named()]; is != nil {
				out[i] = is
			}
		}
		return out
	}
	again, err := c.run(t, replaced(c.live), replaced(c.world))
	if err != nil {
		return []error{fmt.Errorf("evaluating the result: %w", err)}
	}
	switch changed := len(again.ended()) > 0; {
	case changed && c.notIdempotent == "":
		return []error{errors.New("law: evaluating the result changes nothing:\n" + again.trace())}
	case !changed && c.notIdempotent != "":
		return []error{fmt.Errorf("the case says that it is not idempotent (%s), and it is", c.notIdempotent)}
	}
	return nil
}
