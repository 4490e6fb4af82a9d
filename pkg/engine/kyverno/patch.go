package kyverno

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/kyverno/decode"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/kyverno/jsonpatch"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/kyverno/overlay"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/kyverno/variables"
)

// mutation is what a rule does to an object.
type mutation interface {
	// mutate returns the object after the rule: the very map it was given where
	// nothing changed. A *SkippedError says that the mutation holds itself back.
	mutate(e *execution, s *variables.Scope, object map[string]any) (mutated, error)
}

// mutated is an object after a mutation, and what is to be said about it.
type mutated struct {
	object   map[string]any
	warnings []engine.Warning
	// impure says why the mutation may give another result on its own result.
	impure string
}

// decodeMutation reads the patches of a mutate block. rest is what else the rule
// says: Kyverno substitutes variables in all of it before it patches, so that
// one that cannot be resolved anywhere fails the rule.
func decodeMutation(m *decode.Fields, rest map[string]any) mutation {
	foreach := m.At("foreach")
	if foreach.Value != nil {
		for _, key := range []string{"patchStrategicMerge", "patchesJson6902"} {
			if m.Has(key) {
				m.At(key).Lint("has no effect beside foreach")
			}
		}
		return decodeForEach(foreach, 0)
	}
	patch := decodePatch(m)
	template, err := variables.Parse(rest)
	if err != nil {
		m.Fail("%w", err)
		return nil
	}
	if template.Static() {
		return patch
	}
	return &substituted{rest: template, mutation: patch}
}

// substituted is a mutation that needs the rest of its rule to be resolvable.
type substituted struct {
	mutation
	rest *variables.Template
}

func (m *substituted) mutate(e *execution, s *variables.Scope, object map[string]any) (mutated, error) {
	if _, err := m.rest.Render(s); err != nil {
		return mutated{object: object}, e.failed("rule", substitutionError(err))
	}
	return m.mutation.mutate(e, s, object)
}

func substitutionError(err error) error { return fmt.Errorf("variable substitution failed: %w", err) }

// decodePatch reads patchStrategicMerge or patchesJson6902.
func decodePatch(m *decode.Fields) mutation {
	strategic, json6902 := m.At("patchStrategicMerge"), m.At("patchesJson6902")
	switch {
	case strategic.Value != nil && json6902.Value != nil:
		m.Fail("has both patchStrategicMerge and patchesJson6902, of which only one is allowed")
	case strategic.Value != nil:
		if _, ok := strategic.Value.(map[string]any); !ok {
			strategic.Fail("must be a mapping, not %s", decode.TypeName(strategic.Value))
			return nil
		}
		return &strategicPatch{newPatch(strategic, "patchStrategicMerge")}
	case json6902.Value != nil:
		return decodeJSONPatch(json6902)
	default:
		m.Fail("has no patchStrategicMerge, patchesJson6902 or foreach")
	}
	return nil
}

// patch is a patch that may hold variables.
type patch struct {
	field    string // "mutate.patchStrategicMerge"
	template *variables.Template
}

func newPatch(n decode.Node, key string) patch {
	t, err := variables.ParseAt(n.Value, "mutate", key)
	if err != nil {
		n.Fail("%w", err)
	}
	return patch{field: fieldInRule(n.Path), template: t}
}

func (p *patch) render(s *variables.Scope) (any, error) {
	rendered, err := p.template.Render(s)
	if err != nil {
		return nil, substitutionError(err)
	}
	return rendered, nil
}

// strategicPatch is a patchStrategicMerge.
type strategicPatch struct{ patch }

func (p *strategicPatch) mutate(e *execution, s *variables.Scope, object map[string]any) (mutated, error) {
	unchanged := mutated{object: object}
	rendered, err := p.render(s)
	if err != nil {
		return unchanged, e.failed(p.field, err)
	}
	document, ok := rendered.(map[string]any)
	if !ok {
		return unchanged, e.failed(p.field, fmt.Errorf("must be a mapping, not %s", decode.TypeName(rendered)))
	}
	result, err := overlay.Apply(object, document, e.schema())
	var condition *overlay.ConditionError
	switch {
	case errors.As(err, &condition):
		return unchanged, &SkippedError{Reason: p.field, Err: condition}
	case err != nil:
		return unchanged, e.failed(p.field, err)
	}
	return mutated{object: result.Object, warnings: result.Warnings, impure: p.template.NotIdempotent()}, nil
}

// jsonPatch is a patchesJson6902.
type jsonPatch struct {
	patch
	parsed *jsonpatch.Patch // nil when it holds variables
}

func decodeJSONPatch(n decode.Node) mutation {
	source := n.Text()
	p := &jsonPatch{patch: newPatch(n, "patchesJson6902")}
	if p.template == nil || !p.template.Static() {
		return p
	}
	parsed, err := jsonpatch.Parse(source)
	if err != nil {
		n.Fail("%w", err)
		return nil
	}
	p.parsed = &parsed
	return p
}

func (p *jsonPatch) mutate(e *execution, s *variables.Scope, object map[string]any) (mutated, error) {
	unchanged := mutated{object: object}
	parsed, err := p.parse(s)
	if err != nil {
		return unchanged, e.failed(p.field, err)
	}
	after, err := parsed.Apply(object)
	if err != nil {
		return unchanged, e.failed(p.field, err)
	}
	if sameMap(after, object) {
		return unchanged, nil
	}
	out := mutated{impure: cmp.Or(p.template.NotIdempotent(), parsed.NotIdempotent())}
	out.object, out.warnings = quoteMetadata(after)
	return out, nil
}

func (p *jsonPatch) parse(s *variables.Scope) (*jsonpatch.Patch, error) {
	if p.parsed != nil {
		return p.parsed, nil
	}
	rendered, err := p.render(s)
	if err != nil {
		return nil, err
	}
	source, ok := rendered.(string)
	if !ok { // the whole patch was one variable, and gave a list
		raw, err := json.Marshal(rendered)
		if err != nil {
			return nil, err
		}
		source = string(raw)
	}
	parsed, err := jsonpatch.Parse(source)
	return &parsed, err
}
