package kyverno

import (
	"cmp"
	"encoding/json"
	"fmt"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/diff"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/kyverno/jsonpatch"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/kyverno/legacy"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/kyverno/variables"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/policydecode"
)

// operations is a parsed list of changes.
type operations interface {
	Apply(object map[string]any) (map[string]any, error)
	NotIdempotent() string
	Explain(object map[string]any, why *engine.Reasons)
}

// operationsPatch is a patch that lists changes.
type operationsPatch struct {
	written
	parse  func(rendered any) (operations, error)
	parsed operations // nil when the patch holds variables
}

// decodeOperations parses a patch at once, unless variables stand in its way.
func decodeOperations(n policydecode.Node, key string, parse func(rendered any) (operations, error)) Patch {
	p := &operationsPatch{written: decodeWritten(n, key), parse: parse}
	if p.template == nil || !p.template.Static() {
		return p
	}
	var err error
	if p.parsed, err = parse(n.Value); err != nil {
		n.Fail("%w", err)
	}
	return p
}

// Apply resolves the variables and makes the changes.
func (p *operationsPatch) Apply(s *variables.Scope, on PatchSubject) (PatchResult, error) {
	unchanged := PatchResult{Object: on.Object}
	parsed, err := p.resolve(s)
	if err != nil {
		return unchanged, err
	}
	after, err := parsed.Apply(on.Object)
	if err != nil {
		return unchanged, err
	}
	if on.Why != nil && diff.Shared(after, on.Object) {
		parsed.Explain(on.Object, on.Why)
	}
	return quoted(on.Object, after, cmp.Or(p.template.NotIdempotent(), parsed.NotIdempotent())), nil
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

func decodeJSONPatch(n policydecode.Node) Patch {
	if _, ok := n.Value.(string); !ok {
		n.Fail("must be a string, not %s", policydecode.TypeName(n.Value))
		return &operationsPatch{}
	}
	return decodeOperations(n, "patchesJson6902", parseJSONPatch)
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

// decodePatches reads a mutate.patches.
func decodePatches(n policydecode.Node) Patch {
	if _, ok := n.Value.([]any); !ok {
		n.Fail("must be a list, not %s", policydecode.TypeName(n.Value))
		return &operationsPatch{}
	}
	return decodeOperations(n, "patches", parsePatches)
}

func parsePatches(rendered any) (operations, error) {
	list, ok := rendered.([]any)
	if !ok {
		return nil, fmt.Errorf("must be a list, not %s", policydecode.TypeName(rendered))
	}
	parsed, err := legacy.ParsePatches(list)
	if err != nil {
		return nil, err
	}
	return parsed, nil
}
