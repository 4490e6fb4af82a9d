package kyverno

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/diff"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/kyverno/jsonpatch"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/kyverno/legacy"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/kyverno/strategicmerge"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/limit"
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

func compileStrategicMerge(patch any) (compiledPatch, error) {
	document, err := asMapping(patch)
	if err != nil {
		return nil, err
	}
	compiled, err := strategicmerge.Compile(document)
	return func(on patchSubject) (patchResult, error) {
		object, warnings, err := compiled.Apply(on.Clock, on.Object, on.Lists(), on.Why)
		if on.EngineView && err == nil {
			var more []engine.Warning
			more, err = inEngine(compiled, on, object)
			warnings = append(warnings, more...)
		}
		return patchResult{Object: object, Warnings: warnings}, err
	}, err
}

// inEngine returns a warning for each field of the patched object that Kyverno 1.19 would write
// otherwise, where that is known.
func inEngine(p *strategicmerge.Patch, on patchSubject, patched map[string]any) ([]engine.Warning, error) {
	lists := on.Lists()
	theirs, known, err := p.InEngine(on.Clock, on.Object, lists)
	if err != nil || !known {
		return nil, err
	}
	var out []engine.Warning
	for _, f := range diff.Compare(patched, theirs, lists.Type()) {
		text := "Kyverno 1.19 would leave it out"
		switch f.Kind {
		case engine.Added:
			text = "Kyverno 1.19 would write " + jsonText(f.To)
		case engine.Replaced:
			text = fmt.Sprintf("Kyverno 1.19 would write %s, not %s", jsonText(f.To), jsonText(f.From))
		case engine.Moved:
			continue // lists keep their order here
		}
		out = append(out, engine.Warning(engine.PathString(f.Path)+": "+text))
	}
	return out, nil
}

// jsonText is a value as JSON, or a word for one that is long.
func jsonText(value any) string {
	if text, err := json.Marshal(value); err == nil && len(text) <= maxShown {
		return string(text)
	}
	return engine.BriefValue(value)
}

// maxShown bounds the bytes of a value in a warning, and of an expression in a hint.
const maxShown = 500

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

func compileOverlay(patch any) (compiledPatch, error) {
	document, err := asMapping(patch)
	if err != nil {
		return nil, err
	}
	compiled, err := legacy.CompileOverlay(document)
	return func(on patchSubject) (patchResult, error) {
		after, err := compiled.Apply(on.Clock, on.Object, on.Why)
		return quoted(on.Object, after, ""), err
	}, err
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
	for _, err := range engine.JoinedErrors(p.err) {
		failIn(n, err)
	}
	return p
}

// failIn reports what is wrong with a list of operations, at the line in its text.
func failIn(n policydecode.Node, err error) {
	var operation *jsonpatch.OperationError
	var syntax *jsonpatch.SyntaxError
	switch {
	case errors.As(err, &operation):
		n.Path = fmt.Sprintf("%s[%d]", n.Path, operation.Index)
		if what := strings.TrimSpace(operation.Op + " " + operation.Path); what != "" {
			n.Fail("%s: %w", what, operation.Err)
			return
		}
		n.Fail("%w", operation.Err)
	case errors.As(err, &syntax):
		field := n.Path
		n.Path += "[0]"
		e := n.Error(err)
		e.Field = field
		n.Report.Errs = append(n.Report.Errs, &e)
	default:
		n.Fail("%w", err)
	}
}

// operations is a parsed list of operations.
type operations interface {
	Apply(c *limit.Clock, object map[string]any, why *engine.Reasons) (map[string]any, error)
	NotIdempotent() string
}

func applying(p operations) compiledPatch {
	return func(on patchSubject) (patchResult, error) {
		after, err := p.Apply(on.Clock, on.Object, on.Why)
		if err != nil {
			return patchResult{Object: on.Object}, err
		}
		return quoted(on.Object, after, p.NotIdempotent()), nil
	}
}

func decodeJSONPatch(n policydecode.Node) *patch {
	if _, ok := n.Value.(string); !ok {
		n.Fail("must be a string, not %s", policydecode.TypeName(n.Value))
		return &patch{}
	}
	return decodeOperations(n, "patchesJson6902", compileJSONPatch)
}

// decodedSize is how many times its text a patch may take when it is decoded.
const decodedSize = 8

// compileJSONPatch reads the text of a patch, or the list that a patch which is one variable gave.
func compileJSONPatch(patch any) (compiledPatch, error) {
	source, ok := patch.(string)
	if !ok {
		raw, err := json.Marshal(patch)
		if err != nil {
			return nil, err
		}
		source = string(raw)
	}
	if err := limit.Size(len(source) * decodedSize); err != nil {
		return nil, err
	}
	parsed, err := jsonpatch.Parse(source)
	return applying(parsed), err
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
	return applying(parsed), err
}

func asList(patch any) ([]any, error) {
	list, ok := patch.([]any)
	if !ok {
		return nil, fmt.Errorf("must be a list, not %s", policydecode.TypeName(patch))
	}
	return list, nil
}
