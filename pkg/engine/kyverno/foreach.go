package kyverno

import (
	"cmp"
	"errors"
	"fmt"
	"reflect"
	"strconv"
	"strings"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/decode"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/fielddiff"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/kyverno/conditions"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/kyverno/jmespath"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/kyverno/variables"
)

// forEach applies its entries one after the other, each to every element of a list
// (pkg/engine/handlers/mutation/common.go).
type forEach struct {
	entries []*forEachEntry
	level   int // of nesting; 0 is the outermost
}

type forEachEntry struct {
	field         string // "mutate.foreach[0]"
	index         int    // in its foreach
	list          *jmespath.Expression
	descending    bool
	context       []*contextEntry
	preconditions *conditions.Conditions
	mutation      mutation
	impure        string // as in mutated, because of the list or the context
}

// maxForEachLevel bounds nesting; the cost of a level multiplies.
const maxForEachLevel = 5

func decodeForEach(n decode.Node, level int) mutation {
	if level >= maxForEachLevel {
		n.Fail("is nested more than %d levels deep", maxForEachLevel)
		return nil
	}
	list := n.List()
	if len(list) == 0 {
		n.Fail("has no entries")
	}
	out := &forEach{level: level}
	for i, item := range list {
		entry := decodeForEachEntry(item, level)
		entry.index = i
		out.entries = append(out.entries, entry)
	}
	return out
}

func decodeForEachEntry(n decode.Node, level int) *forEachEntry {
	f := n.Fields()
	out := &forEachEntry{
		field: fieldInRule(n.Path), list: decodeList(f.At("list")),
		context: decodeContext(f.At("context")), preconditions: decodeConditions(f.At("preconditions")),
	}
	if out.impure = impureContext(out.context); out.impure == "" && out.list != nil {
		out.impure = out.list.NotIdempotent()
	}
	// A patch without order runs from the end: elements that a strategic merge
	// adds come first, so that this keeps the order of the list.
	out.descending = f.Has("patchStrategicMerge")
	switch order := f.At("order").Text(); order {
	case "":
	case "Ascending", "Descending":
		out.descending = order == "Descending"
	default:
		f.At("order").Fail("must be Ascending or Descending, not %q", order)
	}
	if f.Has("foreach") {
		if f.Has("patchStrategicMerge") || f.Has("patchesJson6902") {
			f.Fail("has both a nested foreach and a patch, of which only one is allowed")
		}
		out.mutation = decodeForEach(f.At("foreach"), level+1)
	} else {
		out.mutation = decodePatch(f)
	}
	f.Done()
	return out
}

func decodeList(n decode.Node) *jmespath.Expression {
	query := n.Text()
	switch {
	case query == "":
		n.Fail("is missing")
		return nil
	case strings.HasPrefix(strings.TrimSpace(query), "{{"):
		n.Fail("is an expression by itself; remove the braces")
		return nil
	}
	compiled, err := jmespath.Compile(query)
	if err != nil {
		n.Fail("%w", err)
		return nil
	}
	return compiled
}

func (m *forEach) mutate(e *execution, s *variables.Scope, object map[string]any) (mutated, error) {
	out := mutated{object: object}
	var held error
	patched := 0
	for _, entry := range m.entries {
		before := out.object
		n, err := entry.each(e, s, m.level, &out)
		var skipped *SkippedError
		switch {
		case errors.As(err, &skipped):
			held = err
		case err != nil:
			return mutated{object: object}, err
		}
		patched += n
		// Only the next entry sees what this one did. The trigger of a rule with
		// targets stays what it was.
		if !fielddiff.Shared(before, out.object) && !e.onTarget {
			s = s.Child()
			s.Set("request", e.request(out.object))
		}
	}
	if patched == 0 && held != nil {
		return out, held
	}
	if !fielddiff.Shared(out.object, object) && reflect.DeepEqual(out.object, object) {
		out.object = object // one element has undone another
	}
	return out, nil
}

// each runs an entry on its elements and accumulates into out. It counts the
// elements that were patched; when none was and some were held back, the error
// is the reason of the last.
func (f *forEachEntry) each(e *execution, s *variables.Scope, level int, out *mutated) (int, error) {
	elements, err := f.elements(e, s)
	if err != nil {
		return 0, err
	}
	patched := 0
	var held error
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
		child := elementScope(s, elements[index], index, level)
		if level == 0 {
			e.giveElement(child, f.index, index)
		}
		next, err := f.element(e, child, out.object)
		var skipped *SkippedError
		switch {
		case errors.As(err, &skipped):
			held = err
			continue
		case err != nil:
			return patched, atElement(err, index)
		}
		patched++
		out.object = next.object
		out.warnings = append(out.warnings, next.warnings...)
		out.impure = cmp.Or(out.impure, next.impure, f.impure)
	}
	if patched > 0 {
		return patched, nil
	}
	return 0, held
}

// elements evaluates the list, once. A single value is a list of one. The limit
// holds for all lists of the rule together, since nested ones multiply.
func (f *forEachEntry) elements(e *execution, s *variables.Scope) ([]any, error) {
	value, err := s.Query(f.list)
	if err != nil {
		return nil, e.failed(f.field+".list", fmt.Errorf("failed to evaluate list %s: %w", f.list, err))
	}
	list, ok := value.([]any)
	if !ok {
		list = []any{value}
	}
	e.visited += len(list)
	if limit := e.world.Limits.Elements; limit > 0 && e.visited > limit {
		return nil, e.failed(f.field+".list", fmt.Errorf("the rule visits more than %d elements (limit Elements)", limit))
	}
	return list, nil
}

func elementScope(s *variables.Scope, element any, index, level int) *variables.Scope {
	child := s.Child()
	for _, suffix := range []string{"", strconv.Itoa(level)} {
		child.Set("element"+suffix, element)
		child.Set("elementIndex"+suffix, int64(index))
	}
	return child
}

func (f *forEachEntry) element(e *execution, s *variables.Scope, object map[string]any) (mutated, error) {
	e.define(s, f.context)
	if err := e.meets(f.preconditions, s, f.field+".preconditions"); err != nil {
		return mutated{object: object}, err
	}
	return f.mutation.mutate(e, s, object)
}

// atElement says at which element of a list a rule failed.
func atElement(err error, index int) error {
	var failed *RuleError
	if !errors.As(err, &failed) {
		return err
	}
	return &RuleError{Field: failed.Field, Err: fmt.Errorf("element %d: %w", index, failed.Err)}
}
