package kyverno

import (
	"cmp"
	"errors"
	"fmt"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/diff"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/kyverno/strategicmerge"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/kyverno/variables"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/policydecode"
)

// mutation is what a rule, or an entry of a foreach, does to an object: it applies the entries of a foreach, or a patch, in
// rules of Kyverno 1.0 to 1.5 several.
type mutation struct {
	// rest is that of a rule with variables: Kyverno substitutes them in all of it before it patches, so that one that cannot
	// be resolved anywhere fails the rule.
	rest    *variables.Template
	entries []*forEachEntry
	patches []*patch
}

// patchResult is an object after a patch, and what to report about it.
type patchResult struct {
	// Object is the very map that was given where nothing changed; otherwise it
	// shares with it whatever the patch did not touch.
	Object   map[string]any
	Warnings []engine.Warning
	// NotIdempotent is why the patch may give another result on its own result.
	NotIdempotent string
}

// then takes over what another patch made of the object.
func (r *patchResult) then(next patchResult) {
	r.Object = next.Object
	r.Warnings = append(r.Warnings, next.Warnings...)
	r.NotIdempotent = cmp.Or(r.NotIdempotent, next.NotIdempotent)
}

// decodeMutation reads the patches of a mutate block; rest is the rest of the rule.
func decodeMutation(m *policydecode.Fields, rest map[string]any) (out mutation) {
	legacy, foreach := decodeLegacyPatches(m), m.At("foreach")
	if foreach.Value != nil {
		for _, key := range []string{"patchStrategicMerge", "patchesJson6902"} {
			if m.Has(key) {
				m.At(key).Lint("has no effect beside foreach")
			}
		}
		return mutation{entries: decodeForEach(foreach, 0)}
	}
	if out.patches = legacy; len(legacy) == 0 {
		out.patches = decodePatch(m)
	}
	template, err := variables.Parse(rest)
	if err != nil {
		m.Fail("%w", err)
	} else if !template.Static() {
		out.rest = template
	}
	return out
}

// mutate returns the object after the mutation: the very map it was given where
// nothing changed; why, which may be nil, then collects the reasons. The error is a *SkippedError where the mutation does not apply.
func (m *mutation) mutate(e *execution, s *variables.Scope, object map[string]any, why *engine.Reasons) (patchResult, error) {
	if m.rest != nil {
		if _, err := m.rest.Render(s); err != nil {
			return patchResult{Object: object}, e.failed("rule", fmt.Errorf("variable substitution failed: %w", err))
		}
	}
	if len(m.entries) > 0 {
		return m.loop(e, s, object, why)
	}
	return m.patch(e, s, object, why)
}

// patch applies each patch to the result of the one before. One that does not apply does not stop
// the others.
func (m *mutation) patch(e *execution, s *variables.Scope, object map[string]any, why *engine.Reasons) (patchResult, error) {
	out := patchResult{Object: object}
	var held error
	for _, p := range m.patches {
		next, err := p.apply(e, s, out.Object, why)
		var condition *strategicmerge.ConditionError
		switch {
		case errors.As(err, &condition):
			held = &SkippedError{Reason: p.field, Err: condition}
		case err != nil:
			return patchResult{Object: object}, e.failed(p.field, err)
		default:
			out.then(next)
		}
	}
	if held != nil && diff.Shared(out.Object, object) {
		return out, held
	}
	return out, nil
}
