package kyverno

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/diff"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/kyverno/patching"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/kyverno/variables"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/limit"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/policydecode"
)

// patch is one patch of a rule in any form: immutable and safe for concurrent use. Without variables it is
// compiled with its policy, else for each evaluation.
type patch struct {
	field    string              // in the rule: "mutate.patchStrategicMerge"
	template *variables.Template // nil without variables
	form     form
	compiled compiledPatch // nil with variables
	err      error         // from compiling
}

// compiledPatch applies a patch without variables to an object, which is not modified. If nothing changes,
// the reasons go to why, which may be nil. A *patching.ConditionError means that the patch does not apply to
// the object.
type compiledPatch func(e *execution, object map[string]any, why *engine.Reasons) (patchResult, error)

// decodePatch reads patchStrategicMerge or patchesJson6902 of a mutate block or a foreach entry. None, and
// both, are errors in the report.
func decodePatch(m *policydecode.Fields) []*patch {
	strategic, json6902 := m.At("patchStrategicMerge"), m.At("patchesJson6902")
	switch {
	case strategic.Value != nil && json6902.Value != nil:
		m.Fail("has both patchStrategicMerge and patchesJson6902, of which only one is allowed")
	case strategic.Value != nil:
		return []*patch{decodeForm(m, "patchStrategicMerge")}
	case json6902.Value != nil:
		return []*patch{decodeForm(m, "patchesJson6902")}
	case m.Value == nil:
		m.Fail("is empty, so the rule changes nothing")
	case m.Values != nil: // another type has been reported
		m.Fail("has no patchStrategicMerge, patchesJson6902 or foreach")
	}
	return nil
}

// decodeLegacyPatches reads the forms of Kyverno 1.0 to 1.5; none if the block has a newer form, which
// Kyverno preferred. An overlay runs before patches, as in 1.0 and 1.1; from 1.2 on, patches next to an
// overlay had no effect.
func decodeLegacyPatches(m *policydecode.Fields) []*patch {
	var out []*patch
	newerForms := []string{"foreach", "patchStrategicMerge", "patchesJson6902"}
	for _, key := range []string{"overlay", "patches"} {
		if !m.Has(key) {
			continue
		}
		n := m.At(key)
		newer := slices.IndexFunc(newerForms, m.Has)
		if newer >= 0 {
			n.Lint("has no effect beside %s", newerForms[newer])
			continue
		}
		n.Lint("is a form of Kyverno 1.0 to 1.5 that later versions do not support")
		out = append(out, decodeForm(m, key))
	}
	return out
}

// decodeForm reads the patch under a key and compiles it if it holds no variables. It returns a patch even
// after an error; a merge reports its error at evaluation.
func decodeForm(m *policydecode.Fields, key string) *patch {
	n, form := m.At(key), forms[key]
	p := &patch{field: strings.Clone(n.PathInRule()), form: form}
	if err := form.check(n.Value); err != nil {
		n.Fail("%w", err)
		return p
	}
	template, err := variables.Parse(n.Value, "mutate", key)
	if err != nil {
		n.Fail("%w", err)
		return p
	}
	if !template.Static() {
		p.template = template
		return p
	}
	fixed, err := template.Render(nil)
	if err == nil {
		p.compiled, err = form.compile(fixed)
	}
	p.err = err
	if form.operations {
		for _, err := range engine.JoinedErrors(err) {
			failIn(n, err)
		}
	}
	return p
}

func (p *patch) resolve(s *variables.Scope) (compiledPatch, error) {
	if p.template == nil {
		return p.compiled, p.err
	}
	rendered, err := p.template.Render(s)
	if err != nil {
		return nil, fmt.Errorf("variable substitution failed: %w", err)
	}
	if err := limit.Value(rendered); err != nil { // a variable can repeat it many times
		return nil, err
	}
	return p.form.compile(rendered)
}

// mutation is the change that a rule or a foreach entry makes: the entries of a foreach, or a patch (in rules
// of Kyverno 1.0 to 1.5, several).
type mutation struct {
	// rest is the rest of a rule with variables: Kyverno substitutes all of them before it patches, so any
	// variable that cannot be resolved fails the rule.
	rest    *variables.Template
	entries []*forEachEntry
	patches []*patch
}

// patchResult is an object after a patch, with details for the report.
type patchResult struct {
	// Object is the given map if nothing changed; else it shares all unpatched parts with it.
	Object   map[string]any
	Warnings []engine.Warning
	// NotIdempotent is why the patch may give another result when it is applied again.
	NotIdempotent string
}

func (r *patchResult) then(next patchResult) {
	r.Object = next.Object
	r.Warnings = append(r.Warnings, next.Warnings...)
	r.NotIdempotent = cmp.Or(r.NotIdempotent, next.NotIdempotent)
}

func decodeMutation(m *policydecode.Fields, rest map[string]any) (out mutation) {
	legacy, foreach := decodeLegacyPatches(m), m.At("foreach")
	if foreach.Value != nil {
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

// mutate returns the mutated object, or the given map if nothing changed; why, which may be nil, then
// collects the reasons. Patches apply in order; one that does not apply does not stop the others. The error
// is an *engine.SkippedError if none applies.
func (m *mutation) mutate(e *execution, s *variables.Scope, object map[string]any,
	why *engine.Reasons,
) (patchResult, error) {
	if m.rest != nil {
		if err := m.rest.Check(s); err != nil {
			return patchResult{Object: object}, &RuleError{"rule", fmt.Errorf("variable substitution failed: %w", err)}
		}
	}
	if len(m.entries) > 0 {
		return m.loop(e, s, object, why)
	}
	out := patchResult{Object: object}
	var held error
	for _, p := range m.patches {
		var next patchResult
		resolved, err := p.resolve(s)
		if err == nil {
			next, err = resolved(e, out.Object, why)
		}
		var condition *patching.ConditionError
		switch {
		case errors.As(err, &condition):
			held = &engine.SkippedError{Reason: p.field, Err: condition}
		case err != nil:
			return patchResult{Object: object}, &RuleError{p.field, err}
		default:
			next.NotIdempotent = cmp.Or(p.template.NotIdempotent(), next.NotIdempotent)
			out.then(next)
		}
	}
	if held != nil && diff.Shared(out.Object, object) {
		return out, held
	}
	return out, nil
}
