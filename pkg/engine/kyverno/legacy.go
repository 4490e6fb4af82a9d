package kyverno

import (
	"cmp"
	"errors"
	"fmt"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/decode"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/fielddiff"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/kyverno/legacy"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/kyverno/variables"
)

// decodeLegacy reads the forms of Kyverno 1.0 to 1.5; nil when a mutate block has
// none, or one of those that came after them, which Kyverno preferred. Overlay and
// patches in one rule run in this order, as in 1.0 and 1.1; from 1.2 on patches
// had no effect beside an overlay.
func decodeLegacy(m *decode.Fields) mutation {
	var out sequence
	for _, key := range []string{"overlay", "patches"} {
		if !m.Has(key) {
			continue
		}
		n := m.At(key)
		if newer := newerForm(m); newer != "" {
			n.Lint("has no effect beside %s", newer)
			continue
		}
		n.Lint("is a form of Kyverno 1.0 to 1.5, which later versions do not know")
		if key == "overlay" {
			out = append(out, decodeOverlay(n))
		} else {
			out = append(out, decodePatches(n))
		}
	}
	switch len(out) {
	case 0:
		return nil
	case 1:
		return out[0]
	}
	return out
}

func newerForm(m *decode.Fields) string {
	for _, key := range []string{"foreach", "patchStrategicMerge", "patchesJson6902"} {
		if m.Has(key) {
			return key
		}
	}
	return ""
}

// sequence is several mutations, each of what the one before made of the object.
// One that holds itself back does not stop the others.
type sequence []mutation

func (m sequence) mutate(e *execution, s *variables.Scope, object map[string]any) (mutated, error) {
	out := mutated{object: object}
	var held error
	for _, next := range m {
		did, err := next.mutate(e, s, out.object)
		var skipped *SkippedError
		switch {
		case errors.As(err, &skipped):
			held = err
			continue
		case err != nil:
			return mutated{object: object}, err
		}
		out.object = did.object
		out.warnings = append(out.warnings, did.warnings...)
		out.impure = cmp.Or(out.impure, did.impure)
	}
	if held != nil && fielddiff.Shared(out.object, object) {
		return out, held
	}
	return out, nil
}

// decodeOverlay reads a mutate.overlay.
func decodeOverlay(n decode.Node) mutation {
	if document, ok := n.Value.(map[string]any); ok {
		if err := legacy.Validate(document); err != nil {
			n.Fail("%w", err)
		}
	}
	return newDocumentPatch(n, "overlay", func(_ *execution, object, document map[string]any) (mutated, error) {
		after, err := legacy.ApplyOverlay(object, document)
		if err != nil {
			return mutated{object: object}, err
		}
		return quoted(object, after, ""), nil
	})
}

// decodePatches reads a mutate.patches.
func decodePatches(n decode.Node) mutation {
	if _, ok := n.Value.([]any); !ok {
		n.Fail("must be a list, not %s", decode.TypeName(n.Value))
		return &operationsPatch{}
	}
	return newOperationsPatch(n, "patches", func(rendered any) (operations, error) {
		list, ok := rendered.([]any)
		if !ok {
			return nil, fmt.Errorf("must be a list, not %s", decode.TypeName(rendered))
		}
		parsed, err := legacy.ParsePatches(list)
		if err != nil {
			return nil, err
		}
		return parsed, nil
	})
}
