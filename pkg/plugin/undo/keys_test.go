package undo

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

// What is left of an entry once the list elements are given up of which nothing but the key is owned.
func TestWithoutKeys(t *testing.T) {
	const app, side = `"k:{\"name\":\"app\"}": {".": {}, "f:name": {}}`, `"k:{\"name\":\"side\"}": {".": {}, "f:name": {}, "f:image": {}}`
	in := func(elements string) string { return `"f:spec": {"f:containers": {` + elements + `}}` }
	const label, kept = `"f:metadata": {"f:labels": {"f:team": {}}}, `, "as it is"
	for fields, want := range map[string]string{
		in(app):                        "",
		label + in(app+", "+side):      label + in(side),
		`"f:metadata": {"f:name": {}}`: kept,
		in(side):                       kept,
		// something deeper is owned
		in(`"k:{\"name\":\"app\"}": {".": {}, "f:name": {}, "f:env": {"k:{\"name\":\"X\"}": {".": {}, "f:name": {}, "f:value": {}}}}`): kept,
	} {
		live := &unstructured.Unstructured{}
		text := `{metadata: {managedFields: [{manager: other, operation: Update, fieldsV1: {"f:spec": {}}}, {manager: run, operation: Apply, fieldsV1: {FIELDS}}]}}`
		if err := yaml.Unmarshal([]byte(strings.Replace(text, "FIELDS", fields, 1)), &live.Object); err != nil {
			t.Fatal(err)
		}
		entries, err := withoutKeys(live, "run")
		if err != nil {
			t.Fatal(err)
		}
		got := kept
		switch len(entries) {
		case 1:
			got = ""
		case 2:
			got = sorted(t, entries[1].FieldsV1.GetRawString())
			want = sorted(t, "{"+want+"}")
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", fields, diff)
		}
	}
}

func sorted(t *testing.T, text string) string {
	t.Helper()
	out, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}
