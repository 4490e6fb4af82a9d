package policydecode_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/policydecode"
)

// document is a policy whose fields are of every type.
func document() map[string]any {
	return map[string]any{
		"text": "a", "flag": true, "number": int64(1), "null": nil,
		"list": []any{"a", int64(2)}, "map": map[string]any{"b": "2", "a": int64(1)},
		"selector":      map[string]any{"matchLabels": map[string]any{"app": "web"}},
		"wrongSelector": map[string]any{"matchlabels": map[string]any{}},
	}
}

// read has a reader read a document, and returns what it complains of.
func read(value any, reader func(*policydecode.Fields)) (errs, warnings []string) {
	report := &policydecode.Report{
		Origin: "team.yaml:1", Policy: "ClusterPolicy p",
		Warn: func(w engine.CompileError) { warnings = append(warnings, w.Error()) },
	}
	reader(policydecode.Node{Report: report, Path: "spec", Value: value}.Fields())
	for _, err := range report.Errs {
		errs = append(errs, err.Error())
	}
	return errs, warnings
}

func TestNodeWrongType(t *testing.T) {
	for name, c := range map[string]struct {
		reader func(*policydecode.Fields)
		want   string
	}{
		"a number for a text":     {func(f *policydecode.Fields) { f.At("number").Text() }, "spec.number: must be a string, not a number"},
		"a text for a flag":       {func(f *policydecode.Fields) { f.At("text").Bool() }, "spec.text: must be true or false, not a string"},
		"a mapping for a list":    {func(f *policydecode.Fields) { f.At("map").List() }, "spec.map: must be a list, not a mapping"},
		"a list for a mapping":    {func(f *policydecode.Fields) { f.At("list").Fields() }, "spec.list: must be a mapping, not a list"},
		"an unknown word":         {func(f *policydecode.Fields) { f.At("text").OneOf("b", "c") }, `spec.text: must be b or c, not "a"`},
		"a number among texts":    {func(f *policydecode.Fields) { f.At("list").Texts() }, "spec.list[1]: must be a string, not a number"},
		"a number in a text map":  {func(f *policydecode.Fields) { f.At("map").TextMap() }, "spec.map.a: must be a string, not a number"},
		"a text for a selector":   {func(f *policydecode.Fields) { f.At("text").LabelSelector() }, "spec.text: must be a label selector, not a string"},
		"a selector of odd field": {func(f *policydecode.Fields) { f.At("wrongSelector").LabelSelector() }, `spec.wrongSelector: is not a label selector: strict decoding error: unknown field "matchlabels"`},
	} {
		t.Run(name, func(t *testing.T) {
			errs, _ := read(document(), c.reader)
			if diff := cmp.Diff([]string{"team.yaml:1: ClusterPolicy p: " + c.want}, errs); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

// The fields that were not read are reported in order, and only they.
func TestFieldsUnknown(t *testing.T) {
	errs, warnings := read(map[string]any{"read": "a", "asked": "b", "accepted": "c", "typo": "d", "also": "e"}, func(f *policydecode.Fields) {
		f.At("read").Text()
		f.Has("asked")
		f.Accept("accepted", "absent")
		f.Done()
	})
	want := []string{
		"team.yaml:1: ClusterPolicy p: spec.also: unknown field, it has no effect",
		"team.yaml:1: ClusterPolicy p: spec.typo: unknown field, it has no effect",
	}
	if diff := cmp.Diff(want, warnings); diff != "" || len(errs) > 0 {
		t.Errorf("errors %q, warnings -want +got:\n%s", errs, diff)
	}
}

// What an unknown field was to be is in the text.
func TestUnknownFieldsSayWhatWasMeant(t *testing.T) {
	for name, c := range map[string]struct{ field, origin, want string }{
		"a misspelt one":                {"exclud", "team.yaml:1", `unknown field, it has no effect; did you mean "exclude"?`},
		"a misplaced one":               {"kinds", "team.yaml:1", "has no effect here: it belongs below resources"},
		"any other":                     {"else", "team.yaml:1", "unknown field, it has no effect"},
		"a server has a newer one only": {"exclud", "cluster", ""},
	} {
		t.Run(name, func(t *testing.T) {
			var warnings []engine.CompileError
			report := &policydecode.Report{Origin: c.origin, Warn: func(w engine.CompileError) { warnings = append(warnings, w) }}
			f := policydecode.Node{Report: report, Value: map[string]any{c.field: "a"}}.Fields()
			f.Accept("exclude")
			f.Elsewhere("below resources", "kinds")
			f.Done()
			if len(warnings) != 1 || (engine.ClassOf(warnings[0].Err) == engine.UnknownField) != (c.want != "") || c.want != "" && warnings[0].Err.Error() != c.want {
				t.Errorf("got %v, want %s", warnings, c.want)
			}
		})
	}
}

// What every object has is known, as a server writes it.
func TestDoneObject(t *testing.T) {
	_, warnings := read(map[string]any{
		"apiVersion": "v1", "kind": "Policy", "status": map[string]any{"ready": true}, "specs": map[string]any{},
		"metadata": map[string]any{"name": "p", "uid": "u", "managedFields": []any{}, "annotation": map[string]any{}},
	}, func(f *policydecode.Fields) {
		f.At("spec")
		f.DoneObject()
	})
	want := []string{
		`team.yaml:1: ClusterPolicy p: spec.metadata.annotation: unknown field, it has no effect; did you mean "annotations"?`,
		`team.yaml:1: ClusterPolicy p: spec.specs: unknown field, it has no effect; did you mean "spec"?`,
	}
	if diff := cmp.Diff(want, warnings); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
