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

// annotateAppliedPatches adds a rule's line to the target that its step changed: not for a change that the
// server ignores or on a subresource, nor where the rule reverts all other changes, since the annotation is
// never the only change. An existing annotation that is not such a map stays, and the step warns.
func annotateAppliedPatches(step *engine.Step, subject *engine.Target, t diff.Type) {
	if subject.Key.Subresource != "" {
		return
	}
	before, after := subject.Object.Object, step.After.Object
	fields := diff.Compare(before, after, t)
	if len(fields) == 0 {
		return
	}
	if old := subject.OldObject; old != nil && diff.Equal(withoutLines(old.Object), withoutLines(after), t) {
		step.After = old
		return
	}
	noted, err := withLine(after, step.Rule.Rule+"."+step.Rule.Policy+".kyverno.io",
		lineValue(fields[len(fields)-1], before, after))
	if err != nil {
		warning := engine.Warning(fmt.Sprintf("the annotation %s is left as it is: %v", engine.AppliedPatches, err))
		step.Warnings = append(slices.Clip(step.Warnings), warning)
		return
	}
	step.After = &unstructured.Unstructured{Object: noted}
}

// withoutLines returns an object without the annotation, and without annotations if it was the only one.
func withoutLines(object map[string]any) map[string]any {
	metadata := diff.Without(mapping(object["metadata"]), "annotations")
	if others := diff.Without(mapping(mapping(object["metadata"])["annotations"]),
		engine.AppliedPatches); len(others) > 0 {
		metadata["annotations"] = others
	}
	return diff.With(object, "metadata", metadata)
}

// lineValue returns the value of a field's line: "added /metadata/labels/team".
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

// withLine returns the object with a line merged into its annotation. An existing annotation that is not such
// a map is an error.
func withLine(object map[string]any, key, value string) (map[string]any, error) {
	metadata, ok := object["metadata"].(map[string]any)
	if !ok {
		return nil, errors.New("the object has no metadata")
	}
	annotations, ok := metadata["annotations"].(map[string]any)
	if !ok && metadata["annotations"] != nil {
		return nil, errors.New("the object's annotations are not a mapping")
	}
	text, ok := annotations[engine.AppliedPatches].(string)
	if !ok && annotations[engine.AppliedPatches] != nil {
		return nil, errors.New("it is not a string")
	}
	lines := map[string]string{}
	if yaml.UnmarshalStrict([]byte(text), &lines) != nil { // other programs may have written it
		return nil, errors.New("it is not a map of lines")
	}
	if lines == nil { // of an empty string
		lines = map[string]string{}
	}
	if known, there := lines[key]; there && known == value {
		return object, nil
	}
	lines[key] = value
	var written strings.Builder
	for _, key := range slices.Sorted(maps.Keys(lines)) {
		written.WriteString(yamlString(key) + ": " + yamlString(lines[key]) + "\n")
	}
	annotations = diff.With(annotations, engine.AppliedPatches, written.String())
	return diff.With(object, "metadata", diff.With(metadata, "annotations", annotations)), nil
}

// yamlString writes a string as YAML: plain where possible, else as JSON.
func yamlString(s string) string {
	if plain, err := yaml.Marshal(s); err == nil && string(plain) == s+"\n" {
		return s
	}
	quoted, _ := json.Marshal(s) // a string never fails
	return string(quoted)
}
