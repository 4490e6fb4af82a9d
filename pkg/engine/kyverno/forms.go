package kyverno

import (
	"encoding/json"
	"fmt"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/kyverno/jsonpatch"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/kyverno/legacy"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/kyverno/strategicmerge"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/policydecode"
)

// The forms of a patch. Each reader returns a patch even where it reports an error:
// there was one.

func decodeStrategicMerge(n policydecode.Node) *patch {
	if _, err := asMapping(n.Value); err != nil {
		n.Fail("%w", err)
		return &patch{}
	}
	return newPatch(n, "patchStrategicMerge", compileStrategicMerge)
}

type strategicMergePatch struct{ *strategicmerge.Patch }

func compileStrategicMerge(patch any) (compiledPatch, error) {
	document, err := asMapping(patch)
	if err != nil {
		return nil, err
	}
	compiled, err := strategicmerge.Compile(document)
	return strategicMergePatch{compiled}, err
}

func (p strategicMergePatch) apply(on patchSubject) (patchResult, error) {
	object, warnings, err := p.Edit(on.Draft, on.Budget, on.Object, on.Schema(), on.Why)
	return patchResult{Object: object, Warnings: warnings}, err
}

// decodeOverlay reads a mutate.overlay.
func decodeOverlay(n policydecode.Node) *patch {
	document, err := asMapping(n.Value)
	if err != nil {
		n.Fail("%w", err)
		return &patch{}
	}
	if _, err := legacy.CompileOverlay(document); err != nil {
		n.Fail("%w", err)
	}
	return newPatch(n, "overlay", compileOverlay)
}

type overlayPatch struct{ *legacy.Overlay }

func compileOverlay(patch any) (compiledPatch, error) {
	document, err := asMapping(patch)
	if err != nil {
		return nil, err
	}
	compiled, err := legacy.CompileOverlay(document)
	return overlayPatch{compiled}, err
}

func (p overlayPatch) apply(on patchSubject) (patchResult, error) {
	after, err := p.Apply(on.Budget, on.Object, on.Why)
	return quoted(nil, on.Object, after, ""), err
}

func asMapping(patch any) (map[string]any, error) {
	document, ok := patch.(map[string]any)
	if !ok {
		return nil, fmt.Errorf("must be a mapping, not %s", policydecode.TypeName(patch))
	}
	return document, nil
}

// decodeOperations reads a patch that is a list of operations.
func decodeOperations(n policydecode.Node, key string, compile compilePatch) *patch {
	p := newPatch(n, key, compile)
	if p.err != nil {
		n.Fail("%w", p.err)
	}
	return p
}

// operations is a parsed list of operations.
type operations interface {
	Edit(d *engine.Draft, b *engine.Budget, object map[string]any, why *engine.Reasons) (map[string]any, error)
	NotIdempotent() string
}

type operationsPatch struct{ operations }

func (p operationsPatch) apply(on patchSubject) (patchResult, error) {
	after, err := p.Edit(on.Draft, on.Budget, on.Object, on.Why)
	if err != nil {
		return patchResult{Object: on.Object}, err
	}
	return quoted(on.Draft, on.Object, after, p.NotIdempotent()), nil
}

func decodeJSONPatch(n policydecode.Node) *patch {
	if _, ok := n.Value.(string); !ok {
		n.Fail("must be a string, not %s", policydecode.TypeName(n.Value))
		return &patch{}
	}
	return decodeOperations(n, "patchesJson6902", compileJSONPatch)
}

// compileJSONPatch reads the text of a patch, or the list that a patch which is one
// variable gave.
func compileJSONPatch(patch any) (compiledPatch, error) {
	source, ok := patch.(string)
	if !ok {
		raw, err := json.Marshal(patch)
		if err != nil {
			return nil, err
		}
		source = string(raw)
	}
	parsed, err := jsonpatch.Parse(source)
	return operationsPatch{parsed}, err
}

// decodePatches reads a mutate.patches.
func decodePatches(n policydecode.Node) *patch {
	if _, err := asList(n.Value); err != nil {
		n.Fail("%w", err)
		return &patch{}
	}
	return decodeOperations(n, "patches", compilePatches)
}

func compilePatches(patch any) (compiledPatch, error) {
	list, err := asList(patch)
	if err != nil {
		return nil, err
	}
	parsed, err := legacy.ParsePatches(list)
	return operationsPatch{legacyPatches{parsed}}, err
}

// legacyPatches copy always, since each operation may fail by itself.
type legacyPatches struct{ legacy.Patches }

// Edit implements operations.
func (p legacyPatches) Edit(_ *engine.Draft, b *engine.Budget, object map[string]any, why *engine.Reasons) (map[string]any, error) {
	return p.Apply(b, object, why)
}

func asList(patch any) ([]any, error) {
	list, ok := patch.([]any)
	if !ok {
		return nil, fmt.Errorf("must be a list, not %s", policydecode.TypeName(patch))
	}
	return list, nil
}
