package kyverno

import (
	"errors"
	"fmt"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/diff"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/kyverno/legacy"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/kyverno/strategicmerge"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/kyverno/variables"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/policydecode"
)

// documentPatch is a patch that has the shape of the object.
type documentPatch struct {
	written
	apply applyDocument
}

type applyDocument func(on PatchSubject, document map[string]any) (PatchResult, error)

// decodeDocument reads a patch whose value is a mapping. Like all that read a
// patch, it returns one even where it reports an error: there was a patch.
func decodeDocument(n policydecode.Node, key string, apply applyDocument) Patch {
	if _, ok := n.Value.(map[string]any); !ok {
		n.Fail("must be a mapping, not %s", policydecode.TypeName(n.Value))
		return &documentPatch{}
	}
	return &documentPatch{decodeWritten(n, key), apply}
}

// Apply resolves the variables and applies the document.
func (p *documentPatch) Apply(s *variables.Scope, on PatchSubject) (PatchResult, error) {
	unchanged := PatchResult{Object: on.Object}
	rendered, err := p.render(s)
	if err != nil {
		return unchanged, err
	}
	document, ok := rendered.(map[string]any)
	if !ok {
		return unchanged, fmt.Errorf("must be a mapping, not %s", policydecode.TypeName(rendered))
	}
	out, err := p.apply(on, document)
	if err != nil {
		return unchanged, discreet(err, s)
	}
	out.NotIdempotent = p.template.NotIdempotent()
	return out, nil
}

// discreet keeps a value that was copied from a Secret out of an error.
func discreet(err error, s *variables.Scope) error {
	var failed *strategicmerge.ConditionError
	secrets := s.Interpreter().Secrets()
	if secrets != nil && errors.As(err, &failed) && secrets.Known(failed.Got) {
		return failed.Discreet()
	}
	return err
}

func applyStrategic(on PatchSubject, document map[string]any) (PatchResult, error) {
	schema := on.Schema()
	result, err := strategicmerge.Apply(on.Object, document, schema)
	if err == nil && on.Why != nil && diff.Shared(result.Object, on.Object) {
		strategicmerge.Explain(on.Object, document, schema, on.Why)
	}
	return PatchResult{Object: result.Object, Warnings: result.Warnings}, err
}

// decodeOverlay reads a mutate.overlay.
func decodeOverlay(n policydecode.Node) Patch {
	if document, ok := n.Value.(map[string]any); ok {
		if err := legacy.Validate(document); err != nil {
			n.Fail("%w", err)
		}
	}
	return decodeDocument(n, "overlay", applyOverlay)
}

func applyOverlay(on PatchSubject, document map[string]any) (PatchResult, error) {
	after, err := legacy.ApplyOverlay(on.Object, document)
	if err != nil {
		return PatchResult{Object: on.Object}, err
	}
	if on.Why != nil && diff.Shared(after, on.Object) {
		legacy.ExplainOverlay(on.Object, document, on.Why)
	}
	return quoted(on.Object, after, ""), nil
}
