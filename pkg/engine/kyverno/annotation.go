package kyverno

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"regexp"
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
func annotateAppliedPatches(step engine.Step, subject engine.Target, t diff.Type) engine.Step {
	if step.Outcome != engine.Changed || subject.Key.Subresource != "" {
		return step
	}
	before, after := subject.Object.Object, step.After.Object
	fields := diff.Compare(before, after, t)
	if len(fields) == 0 {
		return step
	}
	if old := subject.OldObject; old != nil && diff.Equal(old.Object, withoutLines(after, old.Object), t) {
		step.After = old
		return step
	}
	noted, err := withLine(after, lineKey(step.Rule), lineValue(fields[len(fields)-1], before, after))
	if err != nil {
		warning := engine.Warning(fmt.Sprintf("the annotation %s is left as it is: %v", appliedPatchesAnnotation, err))
		step.Warnings = append(slices.Clip(step.Warnings), warning)
		return step
	}
	step.After = &unstructured.Unstructured{Object: noted}
	return step
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

// withLine returns the object with a line merged into its annotation. It is an
// error when what is there is no such map.
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
	lines := map[string]string{}
	if yaml.UnmarshalStrict([]byte(text), &lines) != nil {
		return nil, errors.New("it is not a map of lines")
	}
	if lines[key] == value {
		return object, nil
	}
	if lines == nil { // the text was a null
		lines = map[string]string{}
	}
	lines[key] = value
	out := map[string]any{}
	maps.Copy(out, annotations)
	out[appliedPatchesAnnotation] = linesText(lines)
	return withAnnotations(object, out), nil
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

// linesText writes a line for each entry, whatever its length.
func linesText(lines map[string]string) string {
	var b strings.Builder
	for _, key := range slices.Sorted(maps.Keys(lines)) {
		fmt.Fprintf(&b, "%s: %s\n", yamlText(key), yamlText(lines[key]))
	}
	return b.String()
}

// plainYAML is text that YAML reads as this very string without quotes: words and
// paths, which cannot be taken for numbers or booleans.
var plainYAML = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9._~-]*[./ ]([A-Za-z0-9._~/() -]*[A-Za-z0-9._~/()-])?$`)

func yamlText(s string) string {
	if plainYAML.MatchString(s) {
		return s
	}
	quoted, err := json.Marshal(s)
	if err != nil { // a string is always JSON
		return s
	}
	return string(quoted)
}
