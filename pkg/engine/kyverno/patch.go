package kyverno

import (
	"fmt"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/kyverno/variables"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/policydecode"
)

// Patch is one compiled patch: immutable and safe for concurrent use.
type Patch interface {
	// Field is the place of the patch in its rule: "mutate.patchStrategicMerge".
	Field() string
	// Apply resolves the variables and patches an object, which stays as it is. The
	// error is an *overlay.ConditionError where the patch holds itself back.
	Apply(*variables.Scope, PatchSubject) (PatchResult, error)
}

// PatchSubject is what a patch is applied to.
type PatchSubject struct {
	Object map[string]any
	// Schema looks up how the lists of the object merge; it may say nothing.
	Schema func() engine.Schema
	// Why takes why nothing changes; nil where nobody asks.
	Why *engine.Reasons
}

// PatchResult is an object after a patch, and what is to be said about it.
type PatchResult struct {
	// Object is the very map that was given where nothing changed; otherwise it
	// shares with it whatever the patch did not touch.
	Object   map[string]any
	Warnings []engine.Warning
	// NotIdempotent says why the patch may give another result on its own result.
	NotIdempotent string
}

// DecodePatch reads patchStrategicMerge or patchesJson6902 of a mutate block, or of an
// entry of a foreach. It is nil where there is none or are both, which goes to
// the report.
func DecodePatch(m *policydecode.Fields) Patch {
	strategic, json6902 := m.At("patchStrategicMerge"), m.At("patchesJson6902")
	switch {
	case strategic.Value != nil && json6902.Value != nil:
		m.Fail("has both patchStrategicMerge and patchesJson6902, of which only one is allowed")
	case strategic.Value != nil:
		return decodeDocument(strategic, "patchStrategicMerge", applyStrategic)
	case json6902.Value != nil:
		return decodeJSONPatch(json6902)
	case m.Values != nil: // or else it is no mapping, which has been said
		m.Fail("has no patchStrategicMerge, patchesJson6902 or foreach")
	}
	return nil
}

// DecodeLegacyPatches reads the forms of Kyverno 1.0 to 1.5; none when a mutate block has
// none, or one of those that came after them, which Kyverno preferred. Overlay and
// patches in one rule run in this order, as in 1.0 and 1.1; from 1.2 on patches
// had no effect beside an overlay.
func DecodeLegacyPatches(m *policydecode.Fields) []Patch {
	var out []Patch
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
	return out
}

func newerForm(m *policydecode.Fields) string {
	for _, key := range []string{"foreach", "patchStrategicMerge", "patchesJson6902"} {
		if m.Has(key) {
			return key
		}
	}
	return ""
}

// written is a patch as the policy has it; it may hold variables.
type written struct {
	field    string
	template *variables.Template
}

func decodeWritten(n policydecode.Node, key string) written {
	t, err := variables.ParseAt(n.Value, "mutate", key)
	if err != nil {
		n.Fail("%w", err)
	}
	return written{field: n.PathInRule(), template: t}
}

// Field is the place of the patch in its rule.
func (w *written) Field() string { return w.field }

func (w *written) render(s *variables.Scope) (any, error) {
	rendered, err := w.template.Render(s)
	if err != nil {
		return nil, fmt.Errorf("variable substitution failed: %w", err)
	}
	return rendered, nil
}
