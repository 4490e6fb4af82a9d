package kyverno

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/yaml"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/diff"
)

// appliedPatchesAnnotation is the key of the annotation.
const appliedPatchesAnnotation = engine.AppliedPatches

// annotateAppliedPatches adds a rule's line to the target that its step changed. There is none
// beside a change that the server does not see, on a subresource, or when the
// rule takes back all that others did: the annotation is never the only change.
// Where what the target has is no such map, it stays, and the step warns. It reports
// whether it has compared the states, so that step has the fields.
func annotateAppliedPatches(step *engine.Step, subject *engine.Target, d *engine.Draft, compare comparer) (compared bool, err error) {
	if subject.Key.Subresource != "" {
		return false, nil
	}
	before, after := subject.Object.Object, step.After.Object
	if step.Fields, err = compare(before, after); err != nil || len(step.Fields) == 0 {
		return true, err
	}
	last := step.Fields[len(step.Fields)-1]
	back, err := restores(subject.OldObject, after, last, compare)
	if err != nil {
		return true, err
	}
	if back {
		d.Revert()
		step.After = subject.OldObject
		step.Fields, err = compare(before, step.After.Object)
		return true, err
	}
	text, _ := annotations(after)[appliedPatchesAnnotation].(string)
	noted, err := withLine(d, after, lineKey(step.Rule), lineValue(d, last, before, after))
	if err != nil {
		warning := engine.Warning(fmt.Sprintf("the annotation %s is left as it is: %v", appliedPatchesAnnotation, err))
		step.Warnings = append(slices.Clip(step.Warnings), warning)
		return true, nil
	}
	step.After = &unstructured.Unstructured{Object: noted}
	return addLine(step, text, noted), nil
}

// comparer lists what differs between two states of an object, or returns an error if that is too much.
type comparer func(before, after map[string]any) ([]engine.FieldChange, error)

// restores reports whether an object is as it was, but for the annotation. Last is the last field that has just changed.
func restores(old *unstructured.Unstructured, object map[string]any, last engine.FieldChange, compare comparer) (bool, error) {
	if old == nil {
		return false, nil
	}
	if may, err := mayBeAsIn(old.Object, object, last, compare); !may || err != nil {
		return false, err
	}
	fields, err := compare(old.Object, withoutLines(object, old.Object))
	return len(fields) == 0, err
}

// addLine adds to the fields of a step that another line has changed the annotation. It reports whether
// nothing else has changed there, so that this is all.
func addLine(step *engine.Step, text string, noted map[string]any) bool {
	now := annotations(noted)[appliedPatchesAnnotation]
	if text == now {
		return true
	}
	path, next := fieldpath.MakePathOrDie("metadata", "annotations", appliedPatchesAnnotation), len(step.Fields)
	for i, f := range step.Fields {
		if len(f.Path) <= len(path) && f.Path.Equals(path[:len(f.Path)]) {
			return false
		}
		if next == len(step.Fields) && f.Path.Compare(path) > 0 {
			next = i
		}
	}
	if text == "" {
		return false
	}
	step.Fields = slices.Insert(step.Fields, next, engine.FieldChange{Path: path, Kind: engine.Replaced, From: text, To: now})
	return true
}

// mayBeAsIn reports whether a field that has changed may be as it is in another state of the object.
func mayBeAsIn(other, object map[string]any, f engine.FieldChange, compare comparer) (bool, error) {
	was, there := diff.Lookup(other, f.Path)
	is, here := diff.Lookup(object, f.Path)
	switch {
	case there && here:
		fields, err := compare(mapping(asBefore(nil, other, f.Path)), mapping(asBefore(nil, object, f.Path)))
		return len(fields) == 0, err
	case !there && !here:
		return true, nil
	}
	text, isText := cmp.Or(was, is).(string)
	return !isText || text == "", nil
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
func lineValue(d *engine.Draft, f engine.FieldChange, before, after map[string]any) string {
	var holder any = after
	if f.Kind == engine.Removed {
		holder = asBefore(d, before, f.Path)
	}
	for n := len(f.Path); n > 0; n-- {
		if pointer, ok := diff.Pointer(holder, f.Path[:n]); ok {
			return string(f.Kind) + " " + pointer
		}
	}
	return string(f.Kind) + " /"
}

// asBefore is as much of a value before a step of the draft as a path leads through.
func asBefore(d *engine.Draft, value any, p fieldpath.Path) any {
	m, isMap := value.(map[string]any)
	if !isMap || len(p) == 0 || p[0].FieldName == nil {
		return value
	}
	name := *p[0].FieldName
	return map[string]any{name: asBefore(d, d.Was(m, name), p[1:])}
}

// maxLines bounds the annotation: an API server stores no more annotations.
const maxLines = 256 << 10

// patchLines are those of the annotation, in order, as they were read from a text or written to it.
type patchLines struct {
	text       string
	keys, each []string
	joined     bool   // the text consists of the lines as they are written here
	was        string // the text before the last line was set
	wasJoined  bool
	undo       func() // sets the lines back to that; nil where there was none
}

// as reports whether the lines are those of a text, which may be the one before the last line was set.
func (l *patchLines) as(text string) bool {
	if l.text != text && l.undo != nil && l.was == text {
		l.undo()
		l.text, l.joined, l.undo = text, l.wasJoined, nil
	}
	return l.text == text
}

// readLines reads a text that may be of other programs.
func readLines(text string) (*patchLines, error) {
	var found map[string]string
	if text != "" && yaml.UnmarshalStrict([]byte(text), &found) != nil {
		return nil, errors.New("it is not a map of lines")
	}
	l := &patchLines{text: text, keys: slices.Sorted(maps.Keys(found))}
	for _, key := range l.keys {
		l.each = append(l.each, line(key, found[key]))
	}
	return l, nil
}

// set adds a line, or takes it for another one, and reports whether that is one that was not there. It is an
// error where the text becomes too long.
func (l *patchLines) set(key, value string) (bool, error) {
	at, known := slices.BinarySearch(l.keys, key)
	added := line(key, value)
	from, to := 0, 0 // of the line in the text
	for _, before := range l.each[:at] {
		from += len(before)
	}
	switch to = from; {
	case known && l.each[at] == added:
		return false, nil
	case len(l.text)+len(added) > maxLines:
		return false, fmt.Errorf("it would reach the limit of %d KiB that an API server stores", maxLines>>10)
	case known:
		old := l.each[at]
		to += len(old)
		l.each[at], l.undo = added, func() { l.each[at] = old }
	default:
		l.keys, l.each = slices.Insert(l.keys, at, key), slices.Insert(l.each, at, added)
		l.undo = func() { l.keys, l.each = slices.Delete(l.keys, at, at+1), slices.Delete(l.each, at, at+1) }
	}
	if l.was, l.wasJoined = l.text, l.joined; l.joined {
		l.text = l.text[:from] + added + l.text[to:]
	} else {
		l.text, l.joined = strings.Join(l.each, ""), true
	}
	return true, nil
}

// line is written as one, whatever its length.
func line(key, value string) string { return yamlText(key) + ": " + yamlText(value) + "\n" }

// withLine returns the object with a line merged into its annotation. It is an
// error when what is there is no such map.
func withLine(d *engine.Draft, object map[string]any, key, value string) (map[string]any, error) {
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
	var all *patchLines
	if d != nil {
		all, _ = d.Kept.(*patchLines)
	}
	if all == nil || !all.as(text) {
		var err error
		if all, err = readLines(text); err != nil {
			return nil, err
		}
		if d != nil {
			d.Kept = all
		}
	}
	if added, err := all.set(key, value); err != nil || !added {
		return object, err
	}
	annotations = d.Set(annotations, appliedPatchesAnnotation, all.text)
	return d.Set(object, "metadata", d.Set(metadata, "annotations", annotations)), nil
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
