package kyverno

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/decode"
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
	patch, foreach := decodeLegacy(m), m.At("foreach")
	if foreach.Value != nil {
		for _, key := range []string{"patchStrategicMerge", "patchesJson6902"} {
			if m.Has(key) {
				m.At(key).Lint("has no effect beside foreach")
			}
		}
		return decodeForEach(foreach, 0)
	}
	if patch == nil {
		patch = decodePatch(m)
	}
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
		return newDocumentPatch(strategic, "patchStrategicMerge", applyStrategic)
	case json6902.Value != nil:
		return decodeJSONPatch(json6902)
	case m.Values != nil: // or else it is no mapping, which has been said
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

// documentPatch is a patch that has the shape of the object.
type documentPatch struct {
	patch
	apply func(e *execution, object, document map[string]any) (mutated, error)
}

// newDocumentPatch reads a patch whose value is a mapping. Like all that read a
// patch, it returns one even where it reports an error: there was a patch.
func newDocumentPatch(n decode.Node, key string, apply func(e *execution, object, document map[string]any) (mutated, error)) mutation {
	if _, ok := n.Value.(map[string]any); !ok {
		n.Fail("must be a mapping, not %s", decode.TypeName(n.Value))
		return &documentPatch{}
	}
	return &documentPatch{newPatch(n, key), apply}
}

func (p *documentPatch) mutate(e *execution, s *variables.Scope, object map[string]any) (mutated, error) {
	unchanged := mutated{object: object}
	rendered, err := p.render(s)
	if err != nil {
		return unchanged, e.failed(p.field, err)
	}
	document, ok := rendered.(map[string]any)
	if !ok {
		return unchanged, e.failed(p.field, fmt.Errorf("must be a mapping, not %s", decode.TypeName(rendered)))
	}
	out, err := p.apply(e, object, document)
	var condition *overlay.ConditionError
	switch {
	case errors.As(err, &condition):
		return unchanged, &SkippedError{Reason: p.field, Err: condition}
	case err != nil:
		return unchanged, e.failed(p.field, err)
	}
	out.impure = p.template.NotIdempotent()
	return out, nil
}

func applyStrategic(e *execution, object, document map[string]any) (mutated, error) {
	result, err := overlay.Apply(object, document, e.schema())
	return mutated{object: result.Object, warnings: result.Warnings}, err
}

// operations is a parsed list of changes.
type operations interface {
	Apply(object map[string]any) (map[string]any, error)
	NotIdempotent() string
}

// operationsPatch is a patch that lists changes.
type operationsPatch struct {
	patch
	parse  func(rendered any) (operations, error)
	parsed operations // nil when the patch holds variables
}

// newOperationsPatch parses a patch at once, unless variables stand in its way.
func newOperationsPatch(n decode.Node, key string, parse func(rendered any) (operations, error)) mutation {
	p := &operationsPatch{patch: newPatch(n, key), parse: parse}
	if p.template == nil || !p.template.Static() {
		return p
	}
	var err error
	if p.parsed, err = parse(n.Value); err != nil {
		n.Fail("%w", err)
	}
	return p
}

func (p *operationsPatch) mutate(e *execution, s *variables.Scope, object map[string]any) (mutated, error) {
	unchanged := mutated{object: object}
	parsed, err := p.resolve(s)
	if err != nil {
		return unchanged, e.failed(p.field, err)
	}
	after, err := parsed.Apply(object)
	if err != nil {
		return unchanged, e.failed(p.field, err)
	}
	return quoted(object, after, cmp.Or(p.template.NotIdempotent(), parsed.NotIdempotent())), nil
}

func (p *operationsPatch) resolve(s *variables.Scope) (operations, error) {
	if p.parsed != nil {
		return p.parsed, nil
	}
	rendered, err := p.render(s)
	if err != nil {
		return nil, err
	}
	return p.parse(rendered)
}

func decodeJSONPatch(n decode.Node) mutation {
	if _, ok := n.Value.(string); !ok {
		n.Fail("must be a string, not %s", decode.TypeName(n.Value))
		return &operationsPatch{}
	}
	return newOperationsPatch(n, "patchesJson6902", parseJSONPatch)
}

// parseJSONPatch reads the text of a patch, or the list that a patch which is one
// variable gave.
func parseJSONPatch(rendered any) (operations, error) {
	source, ok := rendered.(string)
	if !ok {
		raw, err := json.Marshal(rendered)
		if err != nil {
			return nil, err
		}
		source = string(raw)
	}
	parsed, err := jsonpatch.Parse(source)
	if err != nil {
		return nil, err
	}
	return parsed, nil
}
