package dialects_test

import (
	"errors"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubectl-mutate/kubectl-mutate/internal/conformance"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/dialects"
)

// free are the places where any field may stand.
var free = regexp.MustCompile(`(?:^metadata\.(?:labels|annotations)|matchLabels|patchStrategicMerge|variable\.value|parameters\.assign\.value|parameters\.values\.fromList\[\d+\])(?:\.|\[|$)`)

// A field that there is not, in any mapping of a policy and of what policies read, is an error, with its
// place: a guard that is misspelt or in the wrong place never widens what a policy does.
func TestUnknownFieldsAreErrors(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("testdata/unknown-fields.yaml")
	if err != nil {
		t.Fatal(err)
	}
	objects := conformance.ReadObjects(t, string(text))
	tried := 0
	for i, object := range objects {
		eachMapping(object.Object, "", func(m map[string]any, path string) {
			tried++
			place := strings.TrimPrefix(path+".zzUnknown", ".")
			m["zzUnknown"] = "x"
			defer delete(m, "zzUnknown")
			told := func(problem string) bool { return strings.Contains(problem, "zzUnknown") }
			if found := problemsOf(objects); !slices.ContainsFunc(found, told) {
				t.Errorf("%s %s: nothing is said of %s, but %q", objects[i].GetKind(), objects[i].GetName(), place, found)
			}
		})
	}
	if found := problemsOf(objects); len(found) > 0 {
		t.Errorf("the documents themselves: %q", found)
	}
	t.Logf("%d mappings in %d documents", tried, len(objects))
}

// problemsOf compiles documents in all languages, and returns the places of errors and of unknown fields.
func problemsOf(objects []*unstructured.Unstructured) []string {
	var out []string
	c := engine.Compilation{Warn: func(w engine.CompileError) {
		if engine.ClassOf(w.Err) == engine.UnknownField {
			out = append(out, w.Field)
		}
	}}
	for _, d := range dialects.All() {
		c.Documents = nil
		for i, object := range objects {
			if d.Accepts(object.GroupVersionKind().GroupKind()) != engine.Foreign {
				c.Documents = append(c.Documents, engine.NewDocument(object, fmt.Sprintf("policies.yaml:%d", i+1)))
			}
		}
		_, err := d.Compile(c)
		for _, problem := range engine.JoinedErrors(err) {
			var e *engine.CompileError
			if errors.As(problem, &e) {
				out = append(out, e.Field+": "+e.Err.Error())
			}
		}
	}
	return out
}

// eachMapping visits the mappings of a value that have a fixed set of fields.
func eachMapping(value any, path string, visit func(m map[string]any, path string)) {
	if free.MatchString(path) {
		return
	}
	switch v := value.(type) {
	case map[string]any:
		visit(v, path)
		for key, below := range v {
			eachMapping(below, strings.TrimPrefix(path+"."+key, "."), visit)
		}
	case []any:
		for i, item := range v {
			eachMapping(item, fmt.Sprintf("%s[%d]", path, i), visit)
		}
	}
}
