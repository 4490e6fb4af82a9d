package kyverno

import (
	"cmp"
	"errors"
	"fmt"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/diff"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/kyverno/strategicmerge"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/kyverno/variables"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/policydecode"
)

// mutation is what a rule does to an object.
type mutation interface {
	// mutate returns the object after the rule: the very map it was given where
	// nothing changed. The error is a *SkippedError where the mutation does not apply.
	mutate(e *execution, s *variables.Scope, on patchSubject) (patchResult, error)
	// does adds what the mutation does to any object.
	does(*footprint)
}

// decodeMutation reads the patches of a mutate block. rest is the rest of the rule:
// Kyverno substitutes variables in all of it before it patches, so that one that
// cannot be resolved anywhere fails the rule.
func decodeMutation(m *policydecode.Fields, rest map[string]any) mutation {
	legacy, foreach := decodeLegacyPatches(m), m.At("foreach")
	if foreach.Value != nil {
		for _, key := range []string{"patchStrategicMerge", "patchesJson6902"} {
			if m.Has(key) {
				m.At(key).Lint("has no effect beside foreach")
			}
		}
		return decodeForEach(foreach, 0)
	}
	patches := patching(legacy)
	if len(legacy) == 0 {
		patches = patching{decodePatch(m)}
	}
	template, err := variables.Parse(rest)
	if err != nil {
		m.Fail("%w", err)
		return nil
	}
	if template.Static() {
		return patches
	}
	return &substituted{rest: template, mutation: patches}
}

// substituted is a mutation that needs the rest of its rule to be resolvable.
type substituted struct {
	mutation
	rest *variables.Template
}

func (m *substituted) mutate(e *execution, s *variables.Scope, on patchSubject) (patchResult, error) {
	if _, err := m.rest.Render(s); err != nil {
		return patchResult{Object: on.Object}, e.failed("rule", fmt.Errorf("variable substitution failed: %w", err))
	}
	return m.mutation.mutate(e, s, on)
}

// patching is one patch or, in rules of Kyverno 1.0 to 1.5, several, each
// applied to the result of the one before. One that does not apply does not stop
// the others.
type patching []*patch

func (m patching) does(f *footprint) {
	for _, p := range m {
		if p != nil {
			f.add(p.footprint)
		}
	}
}

func (m patching) mutate(e *execution, s *variables.Scope, on patchSubject) (patchResult, error) {
	before := on.Object
	out := patchResult{Object: before}
	var held error
	for _, p := range m {
		on.Object = out.Object
		did, err := p.apply(s, on)
		if err != nil {
			var condition *strategicmerge.ConditionError
			if !errors.As(err, &condition) {
				return patchResult{Object: before}, e.failed(p.field, err)
			}
			held = &SkippedError{Reason: p.field, Err: condition}
			continue
		}
		out.Object = did.Object
		out.Warnings = append(out.Warnings, did.Warnings...)
		out.NotIdempotent = cmp.Or(out.NotIdempotent, did.NotIdempotent)
	}
	if held != nil && diff.Shared(out.Object, before) {
		return out, held
	}
	return out, nil
}
