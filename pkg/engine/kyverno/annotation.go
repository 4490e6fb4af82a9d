package kyverno

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/diff"
)

// appliedPatchesAnnotation is the key of the annotation.
const appliedPatchesAnnotation = engine.AppliedPatches

// annotateAppliedPatches adds a rule's line to the target that its step changed. There is none
// beside a change that the server does not see, on a subresource, or when the
// rule takes back all that others did: the annotation is never the only change.
// Where what the target has is no such map, it stays, and the step warns.
func annotateAppliedPatches(step *engine.Step, subject *engine.Target, t diff.Type) {
	if subject.Key.Subresource != "" {
		return
	}
	before, after := subject.Object.Object, step.After.Object
	fields := diff.Compare(before, after, t)
	if len(fields) == 0 {
		return
	}
	if old := subject.OldObject; old != nil && diff.Equal(old.Object, withoutLines(after, old.Object), t) {
		step.After = old
		return
	}
	noted, err := withLine(after, lineKey(step.Rule), lineValue(fields[len(fields)-1], before, after))
	if err != nil {
		warning := engine.Warning(fmt.Sprintf("the annotation %s is left as it is: %v", appliedPatchesAnnotation, err))
		step.Warnings = append(slices.Clip(step.Warnings), warning)
		return
	}
	step.After = &unstructured.Unstructured{Object: noted}
}

// withoutLines is an object with the annotation that another state of it has.
func withoutLines(object, other map[string]any) map[string]any {
	now, was := annotations(object), annotations(other)
	if now[appliedPatchesAnnotation] == nil {
		return object
	}
	now = maps.Clone(now)
	if delete(now, appliedPatchesAnnotation); was[appliedPatchesAnnotation] != nil {
		now[appliedPatchesAnnotation] = was[appliedPatchesAnnotation]
	}
	if len(now) == 0 && was == nil {
		now = nil
	}
	return withAnnotations(object, now)
}

func lineKey(r engine.RuleRef) string { return r.Rule + "." + r.Policy + ".kyverno.io" }

// lineValue is the text of a line for a field: "added /metadata/labels/team".
func lineValue(f engine.FieldChange, before, after map[string]any) string {
	holder := after
	if f.Kind == engine.Removed {
		holder = before
	}
	for n := len(f.Path); n > 0; n-- {
		if pointer, ok := diff.Pointer(holder, f.Path[:n]); ok {
			return string(f.Kind) + " " + pointer
		}
	}
	return string(f.Kind) + " /"
}

// maxLines bounds the annotation: an API server stores no more annotations.
const maxLines = 256 << 10

// readLines reads a text that may be of other programs.
func readLines(text string) (map[string]string, error) {
	lines := map[string]string{}
	if yaml.UnmarshalStrict([]byte(text), &lines) != nil {
		return nil, errors.New("it is not a map of lines")
	}
	if lines == nil { // of an empty text
		lines = map[string]string{}
	}
	return lines, nil
}

// joinLines writes each line as one, whatever its length.
func joinLines(lines map[string]string) string {
	var text strings.Builder
	for _, key := range slices.Sorted(maps.Keys(lines)) {
		text.WriteString(yamlText(key) + ": " + yamlText(lines[key]) + "\n")
	}
	return text.String()
}

// withLine returns the object with a line merged into its annotation. It is an
// error when what is there is no such map, or becomes too long.
func withLine(object map[string]any, key, value string) (map[string]any, error) {
	metadata, ok := object["metadata"].(map[string]any)
	if !ok {
		return nil, errors.New("the object has no metadata")
	}
	annotations, ok := metadata["annotations"].(map[string]any)
	if !ok && metadata["annotations"] != nil {
		return nil, errors.New("the object's annotations are not a mapping")
	}
	text, ok := annotations[appliedPatchesAnnotation].(string)
	if !ok && annotations[appliedPatchesAnnotation] != nil {
		return nil, errors.New("it is not a string")
	}
	lines, err := readLines(text)
	if err != nil {
		return nil, err
	}
	if known, there := lines[key]; there && known == value {
		return object, nil
	}
	lines[key] = value
	written := joinLines(lines)
	if len(written) > maxLines {
		return nil, fmt.Errorf("it would reach the limit of %d KiB that an API server stores", maxLines>>10)
	}
	annotations = diff.With(annotations, appliedPatchesAnnotation, written)
	return diff.With(object, "metadata", diff.With(metadata, "annotations", annotations)), nil
}

func annotations(object map[string]any) map[string]any {
	metadata, _ := object["metadata"].(map[string]any)
	out, _ := metadata["annotations"].(map[string]any)
	return out
}

// withAnnotations is a copy of an object that has metadata, with other
// annotations; nil removes the field.
func withAnnotations(object, annotations map[string]any) map[string]any {
	metadata, _ := object["metadata"].(map[string]any)
	metadata = maps.Clone(metadata)
	if annotations == nil {
		delete(metadata, "annotations")
	} else {
		metadata["annotations"] = annotations
	}
	out := maps.Clone(object)
	out["metadata"] = metadata
	return out
}

// isPlainYAML reports whether YAML reads a text without quotes as this very string: words and
// paths, which cannot be taken for numbers or booleans.
func isPlainYAML(s string) bool {
	separated := false
	for i, c := range []byte(s) {
		switch {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z':
		case i == 0:
			return false
		case '0' <= c && c <= '9', c == '_', c == '~', c == '-':
		case c == '.', c == '/', c == ' ':
			separated = true
		case (c == '(' || c == ')') && separated:
		default:
			return false
		}
	}
	return separated && !strings.HasSuffix(s, " ")
}

func yamlText(s string) string {
	if isPlainYAML(s) {
		return s
	}
	quoted, err := json.Marshal(s)
	if err != nil { // a string is always JSON
		return s
	}
	return string(quoted)
}
