package kyverno

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/diff"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/kyverno/patching"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/kyverno/pattern"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/limit"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/policydecode"
)

// form is a form of a patch: patchStrategicMerge, patchesJson6902 or an old one.
type form struct {
	like    any // a sample of the patch's type in a policy: a map, a list or a string
	compile func(patch any) (compiledPatch, error)
	// checked is set if a patch has to compile even if it holds variables.
	checked bool
	// operations is set for a list of operations; each invalid one is an error of the policy.
	operations bool
}

// forms are the forms of a patch by their key in a mutate block.
//
//nolint:gochecknoglobals // an immutable table
var forms = map[string]form{
	"patchStrategicMerge": {like: map[string]any{}, compile: compileStrategicMerge},
	"overlay":             {like: map[string]any{}, compile: compileOverlay, checked: true},
	"patchesJson6902":     {like: "", compile: compileJSONPatch, operations: true},
	"patches":             {like: []any{}, compile: compileOldPatches, operations: true},
}

// check validates a patch that may hold variables.
func (f *form) check(patch any) (err error) {
	if like, is := policydecode.TypeName(f.like), policydecode.TypeName(patch); like != is {
		return fmt.Errorf("must be %s, not %s", like, is)
	}
	if f.checked {
		_, err = f.compile(patch)
	}
	return err
}

func compileStrategicMerge(patch any) (compiledPatch, error) {
	compiled, err := patching.CompileStrategicMerge(mapping(patch))
	return func(e *execution, object map[string]any, why *engine.Reasons) (patchResult, error) {
		lists := e.lists()
		patched, warnings, err := compiled.Apply(limit.ClockOf(e.ctx), object, lists, why)
		if e.rule.engineView && err == nil {
			var more []engine.Warning
			more, err = inEngine(compiled, e, lists, object, patched)
			warnings = append(warnings, more...)
		}
		return patchResult{Object: patched, Warnings: warnings}, err
	}, err
}

// inEngine returns a warning for each field of the patched object that Kyverno 1.19 is known to write
// differently.
func inEngine(p *patching.StrategicMerge, e *execution, lists *patching.Lists, object,
	patched map[string]any,
) ([]engine.Warning, error) {
	theirs, known, err := p.InEngine(limit.ClockOf(e.ctx), object, lists)
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
			continue // here, lists keep their order
		}
		out = append(out, engine.Warning(engine.PathString(f.Path)+": "+text))
	}
	return out, nil
}

// jsonText returns a value as JSON, or a summary if it is long.
func jsonText(value any) string {
	if text, err := json.Marshal(value); err == nil && len(text) <= maxShown {
		return string(text)
	}
	return engine.BriefValue(value)
}

// maxShown bounds a value in a warning and an expression in a hint, in bytes.
const maxShown = 500

func compileOverlay(patch any) (compiledPatch, error) {
	compiled, err := patching.CompileOverlay(mapping(patch))
	return func(e *execution, object map[string]any, why *engine.Reasons) (patchResult, error) {
		after, err := compiled.Apply(limit.ClockOf(e.ctx), object, why)
		return quoted(object, after), err
	}, err
}

// failIn reports an error in a list of operations at its line.
func failIn(n policydecode.Node, err error) {
	var operation *patching.OperationError
	if !errors.As(err, &operation) {
		field := n.Path
		n.Path += "[0]"
		e := n.Error(err)
		e.Field = field
		n.Report.Errs = append(n.Report.Errs, &e)
		return
	}
	n.Path = fmt.Sprintf("%s[%d]", n.Path, operation.Index)
	if what := strings.TrimSpace(operation.Op + " " + operation.Path); what != "" {
		n.Fail("%s: %w", what, operation.Err)
		return
	}
	n.Fail("%w", operation.Err)
}

func applying(p patching.JSONPatch, err error) (compiledPatch, error) {
	return func(e *execution, object map[string]any, why *engine.Reasons) (patchResult, error) {
		after, err := p.Apply(limit.ClockOf(e.ctx), object, why)
		if err != nil {
			return patchResult{Object: object}, err
		}
		return quoted(object, after), nil
	}, err
}

func compileOldPatches(patch any) (compiledPatch, error) {
	return applying(patching.DecodeOldPatches(sequence(patch)))
}

// decodedSize bounds the decoded size of a patch, as a multiple of its source.
const decodedSize = 8

var parsedPatch = engine.Cached(patching.ParseJSONPatch) //nolint:gochecknoglobals // immutable

// compileJSONPatch reads a patch that is a string, or the list from a patch that is a single variable.
func compileJSONPatch(patch any) (compiledPatch, error) {
	switch p := patch.(type) {
	case []any:
		return applying(patching.DecodeJSONPatch(p))
	case string:
		if err := limit.Size(len(p) * decodedSize); err != nil {
			return nil, err
		}
		return applying(parsedPatch(p))
	}
	return nil, fmt.Errorf("must be a string, not %s", policydecode.TypeName(patch))
}

// metadataPaths are the paths of labels and annotations of an object and of its Pod template.
//
//nolint:gochecknoglobals // an immutable table
var metadataPaths = [][]string{
	{"metadata", "labels"},
	{"metadata", "annotations"},
	{"spec", "template", "metadata", "labels"},
	{"spec", "template", "metadata", "annotations"},
	{"spec", "jobTemplate", "spec", "template", "metadata", "labels"},
	{"spec", "jobTemplate", "spec", "template", "metadata", "annotations"},
}

// quoted returns a JSON patch's result with labels and annotations as strings where it wrote booleans or
// numbers: the server accepts only strings. Strategic merge does so itself.
func quoted(before, after map[string]any) patchResult {
	if diff.Shared(after, before) {
		return patchResult{Object: before}
	}
	out := patchResult{Object: after}
	for _, path := range metadataPaths {
		found, _, _ := unstructured.NestedFieldNoCopy(after, path...)
		values := mapping(found)
		for _, key := range slices.Sorted(maps.Keys(values)) {
			switch value := values[key].(type) {
			case bool, int64, float64:
				if len(out.Warnings) == 0 {
					out.Object = runtime.DeepCopyJSON(after)
				}
				text, _ := pattern.Text(value)
				_ = unstructured.SetNestedField(out.Object, text, append(slices.Clone(path), key)...) // the path exists
				out.Warnings = append(out.Warnings, engine.Warning(fmt.Sprintf(
					"%s %s is written without quotes; it is taken as the string %q", strings.Join(path, "."), key, text)))
			}
		}
	}
	return out
}
