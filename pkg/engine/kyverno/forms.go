package kyverno

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/diff"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/kyverno/jsonpatch"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/kyverno/legacy"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/kyverno/pattern"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/kyverno/strategicmerge"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/limit"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/policydecode"
)

// form is a form of a patch.
type form struct {
	// check returns what is wrong with a patch that may hold variables.
	check func(patch any) error
	// compile reads a patch without variables.
	compile func(patch any) (compiledPatch, error)
	// operations is set for a list of operations, of which each that is wrong is an error of the policy.
	operations bool
}

// forms are the forms of a patch by their keys in a mutate block.
//
//nolint:gochecknoglobals // an immutable table
var forms = map[string]form{
	"patchStrategicMerge": {check: checkType(asMapping), compile: compileStrategicMerge},
	"overlay":             {check: func(patch any) error { _, err := compileOverlay(patch); return err }, compile: compileOverlay},
	"patchesJson6902":     {check: checkType(asString), compile: compileJSONPatch, operations: true},
	"patches":             {check: checkType(asList), compile: compilePatches, operations: true},
}

// decodeForm reads the patch under a key. There is a patch even where an error is reported.
func decodeForm(m *policydecode.Fields, key string) *patch {
	n, form := m.At(key), forms[key]
	if err := form.check(n.Value); err != nil {
		n.Fail("%w", err)
		return &patch{}
	}
	p := newPatch(n, key, form.compile)
	if form.operations {
		for _, err := range engine.JoinedErrors(p.err) {
			failIn(n, err)
		}
	}
	return p
}

func checkType[T any](as func(any) (T, error)) func(any) error {
	return func(patch any) error { _, err := as(patch); return err }
}

func asMapping(patch any) (map[string]any, error) { return as[map[string]any](patch, "a mapping") }
func asString(patch any) (string, error)          { return as[string](patch, "a string") }
func asList(patch any) ([]any, error)             { return as[[]any](patch, "a list") }

func as[T any](patch any, name string) (T, error) {
	out, ok := patch.(T)
	if !ok {
		return out, fmt.Errorf("must be %s, not %s", name, policydecode.TypeName(patch))
	}
	return out, nil
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

func applying(p operations, err error) (compiledPatch, error) {
	return func(on patchSubject) (patchResult, error) {
		after, err := p.Apply(on.Clock, on.Object, on.Why)
		if err != nil {
			return patchResult{Object: on.Object}, err
		}
		return quoted(on.Object, after, p.NotIdempotent()), nil
	}, err
}

// decodedSize is how many times its text a patch may take when it is decoded.
const decodedSize = 8

// compileJSONPatch reads the text of a patch, or the list that a patch which is one variable gave.
func compileJSONPatch(patch any) (compiledPatch, error) {
	if list, isList := patch.([]any); isList {
		return applying(jsonpatch.Decode(list))
	}
	source, err := asString(patch)
	if err == nil {
		err = limit.Size(len(source) * decodedSize)
	}
	if err != nil {
		return nil, err
	}
	return applying(jsonpatch.Parse(source))
}

func compilePatches(patch any) (compiledPatch, error) {
	list, err := asList(patch)
	if err != nil {
		return nil, err
	}
	return applying(legacy.ParsePatches(list))
}

// metadataPaths are the labels and annotations of an object and of its Pod template.
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

// quoted is what a patch made of an object. Labels and annotations that a JSON patch wrote as bare
// booleans or numbers are strings, the only values that the server takes there.
// Strategic merge does the same on its own.
func quoted(before, after map[string]any, notIdempotent string) patchResult {
	if diff.Shared(after, before) {
		return patchResult{Object: before}
	}
	out := patchResult{Object: after, NotIdempotent: notIdempotent}
	for _, path := range metadataPaths {
		found, _, _ := unstructured.NestedFieldNoCopy(out.Object, path...)
		values := mapping(found)
		for _, key := range sortedKeys(values) {
			switch value := values[key].(type) {
			case bool, int64, float64:
				text, _ := pattern.Text(value)
				out.Object = withValue(out.Object, append(path[:len(path):len(path)], key), text)
				out.Warnings = append(out.Warnings, engine.Warning(fmt.Sprintf(
					"%s %s is written without quotes; it is taken as the string %q", strings.Join(path, "."), key, text)))
			}
		}
	}
	return out
}

// withValue returns the object with a value set; only the maps on the way are copied. The path exists.
func withValue(object map[string]any, path []string, value any) map[string]any {
	if len(path) > 1 {
		value = withValue(mapping(object[path[0]]), path[1:], value)
	}
	return diff.With(object, path[0], value)
}
