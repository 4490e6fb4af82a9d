package kyverno

import (
	"cmp"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/diff"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/kyverno/jmespath"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/kyverno/match"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/kyverno/variables"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/limit"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/policydecode"
)

// forEachEntry is an entry of a foreach, applied to every element of a list
// (pkg/engine/handlers/mutation/common.go).
type forEachEntry struct {
	field         string // "mutate.foreach[0]"
	index         int    // in its foreach
	level         int    // nesting depth from 0
	list          *jmespath.Expression
	descending    bool
	context       Entries
	preconditions *match.Conditions
	mutation      mutation
	notIdempotent string // as in patchResult, for the list or the context
}

// maxForEachLevel bounds nesting, whose cost multiplies per level.
const maxForEachLevel = 5

func decodeForEach(n policydecode.Node, level int) []*forEachEntry {
	if level >= maxForEachLevel {
		n.Fail("is nested more than %d levels deep", maxForEachLevel)
		return nil
	}
	list := n.List()
	if len(list) == 0 {
		n.Fail("has no entries")
	}
	out := make([]*forEachEntry, len(list))
	for i, item := range list {
		out[i] = decodeForEachEntry(item, level)
		out[i].index = i
	}
	return out
}

func decodeForEachEntry(n policydecode.Node, level int) *forEachEntry {
	f := n.Fields()
	out := &forEachEntry{
		field: n.PathInRule(), level: level, list: decodeList(f.At("list")),
		context: DecodeEntries(f.At("context")), preconditions: match.DecodeConditions(f.At("preconditions")),
	}
	if out.notIdempotent = out.context.NotIdempotent(); out.notIdempotent == "" && out.list != nil {
		out.notIdempotent = out.list.NotIdempotent()
	}
	// Without an order, a strategic merge runs from the end: it puts new elements first, so the list keeps its
	// order.
	out.descending = f.Has("patchStrategicMerge")
	if f.Has("order") {
		out.descending = f.At("order").OneOf("Ascending", "Descending") == "Descending"
	}
	if f.Has("foreach") {
		if f.Has("patchStrategicMerge") || f.Has("patchesJson6902") {
			f.Fail("has both a nested foreach and a patch, of which only one is allowed")
		}
		out.mutation.entries = decodeForEach(f.At("foreach"), level+1)
	} else {
		out.mutation.patches = decodePatch(f)
	}
	f.Done()
	return out
}

func decodeList(n policydecode.Node) *jmespath.Expression {
	query := n.Text()
	switch {
	case query == "":
		n.Fail("is missing")
		return nil
	case strings.HasPrefix(strings.TrimSpace(query), "{{"):
		n.Fail("is already an expression; remove the braces")
		return nil
	}
	return variables.DecodeExpression(n)
}

// loop applies the entries in order.
func (m *mutation) loop(e *execution, s *variables.Scope, before map[string]any,
	why *engine.Reasons,
) (patchResult, error) {
	out, given := patchResult{Object: before}, s
	var held error
	patched := 0
	for _, entry := range m.entries {
		object := out.Object
		n, err := entry.patchElements(e, s, why, &out)
		switch {
		case isSkipped(err):
			held = err
		case err != nil:
			return patchResult{Object: before}, err
		}
		patched += n
		// Only the next entry sees the new object. The trigger of a rule with targets stays unchanged.
		if !diff.Shared(object, out.Object) && !e.onTarget {
			if s == given {
				s = s.Child()
			}
			s.Set("request", e.request(out.Object))
		}
	}
	if patched == 0 && held != nil {
		return out, held
	}
	if !diff.Shared(out.Object, before) && diff.Same(out.Object, before) {
		out.Object = before
		why.Add("one element reverts what another changes")
	}
	return out, nil
}

// patchElements runs an entry on its elements and accumulates into out. It counts the patched elements; if
// there are none and some were skipped, the error is the last reason.
func (f *forEachEntry) patchElements(e *execution, s *variables.Scope, why *engine.Reasons,
	out *patchResult,
) (int, error) {
	elements, err := f.elements(e, s)
	if err != nil {
		return 0, err
	}
	patched, skipped, last := 0, 0, 0
	var held error // the last reason for skipping
	for i := range elements {
		index := i
		if f.descending {
			index = len(elements) - 1 - i
		}
		if elements[index] == nil {
			continue
		}
		if err := e.ctx.Err(); err != nil {
			return patched, err
		}
		next, err := f.element(e, f.elementScope(e, s, elements[index], index), out.Object,
			why.At(fmt.Sprintf("%s, element %d", f.field, index)))
		switch {
		case isSkipped(err):
			skipped++
			held, last = err, index
			continue
		case err != nil:
			return patched, atElement(err, index)
		}
		patched++
		next.NotIdempotent = cmp.Or(next.NotIdempotent, f.notIdempotent)
		out.then(next)
	}
	if skipped > 1 {
		held = fmt.Errorf("%d elements are skipped, such as element %d: %w", skipped, last, held)
	} else if skipped == 1 {
		held = fmt.Errorf("element %d: %w", last, held)
	}
	why = why.At(f.field)
	switch { // if others were patched, this only explains why nothing more changes
	case held != nil && patched == 0:
		return 0, held
	case held != nil:
		why.Add("%v", held)
	case len(elements) == 0:
		why.Add("the list %s is empty", f.list)
	case patched == 0:
		why.Add("the list %s has only null elements", f.list)
	}
	return patched, nil
}

// contexts returns the context entries of each foreach entry, including nested ones.
func (m *mutation) contexts() []Entries {
	var out []Entries
	for _, entry := range m.entries {
		out = append(append(out, entry.context), entry.mutation.contexts()...)
	}
	return out
}

// elements evaluates the list, once. A single value is a list of one. All lists of the rule share the limit,
// since nested ones multiply.
func (f *forEachEntry) elements(e *execution, s *variables.Scope) ([]any, error) {
	value, err := s.Query(f.list)
	if err != nil {
		return nil, &RuleError{f.field + ".list", fmt.Errorf("failed to evaluate list %s: %w", f.list, err)}
	}
	list, ok := value.([]any)
	if !ok {
		list = []any{value}
	}
	e.visited += len(list)
	if e.visited > limit.Elements {
		return nil, &RuleError{f.field + ".list", fmt.Errorf("the rule visits more than %d elements (limit Elements)", limit.Elements)}
	}
	return list, nil
}

func (f *forEachEntry) elementScope(e *execution, s *variables.Scope, element any,
	index int,
) *variables.Scope {
	child := s.Child()
	for _, suffix := range []string{"", strconv.Itoa(f.level)} {
		child.Set("element"+suffix, element)
		child.Set("elementIndex"+suffix, int64(index))
	}
	if f.level == 0 {
		for name, value := range e.inputs().values.Element(e.rule.policy.name, e.rule.written, f.index, index) {
			child.Set(name, value)
		}
	}
	return child
}

func (f *forEachEntry) element(e *execution, s *variables.Scope, object map[string]any,
	why *engine.Reasons,
) (patchResult, error) {
	e.define(s, f.context)
	if err := e.meets(f.preconditions, s, f.field+".preconditions"); err != nil {
		return patchResult{Object: object}, err
	}
	return f.mutation.mutate(e, s, object, why)
}

func atElement(err error, index int) error {
	var failed *RuleError
	if !errors.As(err, &failed) {
		return err
	}
	return &RuleError{Field: failed.Field, Err: fmt.Errorf("element %d: %w", index, failed.Err)}
}
