package kyverno

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/conformance"
)

// The elements of nested lists count together: two containers, and four
// variables in them, are more than five.
func TestForEachElementLimit(t *testing.T) {
	text, err := os.ReadFile("testdata/foreach-nested.txtar")
	if err != nil {
		t.Fatal(err)
	}
	archive := txtar.Parse(text)
	policy, live := conformance.ReadObjects(t, string(archive.Files[0].Data))[0], conformance.ReadObjects(t, string(archive.Files[1].Data))[0]
	program, err := New().Compile(engine.Compilation{Documents: []engine.Document{engine.NewDocument(policy, "")}})
	if err != nil {
		t.Fatal(err)
	}
	w := conformance.NewWorld()
	w.Limits.Elements = 5
	var steps strings.Builder
	after, err := program.Evaluate(t.Context(), conformance.TargetOf(live), w, conformance.Steps{Writer: &steps})
	if err != nil {
		t.Fatal(err)
	}
	if after != live {
		t.Error("a rule that failed changed the object")
	}
	if want := "more than 5 elements (limit Elements)"; !strings.Contains(steps.String(), want) {
		t.Errorf("no step says %q:\n%s", want, &steps)
	}
}

// A text of an object that is too long for a wildcard pattern fails the rule that takes it for
// one; where it decides nothing, it does not matter.
func TestTextsThatAreNoPatterns(t *testing.T) {
	long := "*" + strings.Repeat("a", 256) + "?*"
	live := conformance.ReadObjects(t, fmt.Sprintf(`{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}, "data": {"long": %q, "a": "b"}}`, long))[0]
	const limit = "more than 256 characters stand between two *"
	condition := func(key, operator, value string) string {
		return fmt.Sprintf(`"preconditions": {"all": [{"key": %s, "operator": %q, "value": %s}]}, "mutate": {"patchStrategicMerge": {"data": {"c": "d"}}}`, key, operator, value)
	}
	const text = `"{{ request.object.data.long }}"`
	for name, c := range map[string]struct {
		rule   string
		failed bool
	}{
		"the value of Equals":         {condition(`"x"`, "Equals", text), true},
		"the value of NotEquals":      {condition(`"x"`, "NotEquals", text), true},
		"the value of AnyIn":          {condition(`"x"`, "AnyIn", text), true},
		"a member of AnyNotIn":        {condition(`"x"`, "AnyNotIn", "["+text+"]"), true},
		"the key of AnyIn":            {condition(text, "AnyIn", `["x"]`), true},
		"a key of AllNotIn":           {condition("["+text+"]", "AllNotIn", `["x"]`), true},
		"a key that a member matches": {condition(text, "AnyIn", `["*"]`), false},
		"a key of which one is found": {condition("["+text+`, "x"]`, "AnyIn", `["x"]`), false},
		"an anchor":                   {`"mutate": {"patchStrategicMerge": {"data": {"(a)": ` + text + `, "c": "d"}}}`, true},
		"an overlay":                  {`"mutate": {"overlay": {"data": {"(a)": ` + text + `, "c": "d"}}}`, true},
	} {
		t.Run(name, func(t *testing.T) {
			policy := conformance.ReadObjects(t, `{"apiVersion": "kyverno.io/v1", "kind": "ClusterPolicy", "metadata": {"name": "p"}, "spec": {"rules": [{"name": "r",
				"match": {"any": [{"resources": {"kinds": ["ConfigMap"]}}]}, `+c.rule+`}]}}`)[0]
			program, err := New().Compile(engine.Compilation{Documents: []engine.Document{engine.NewDocument(policy, "")}})
			if err != nil {
				t.Fatal(err)
			}
			var steps strings.Builder
			after, err := program.Evaluate(t.Context(), conformance.TargetOf(live), conformance.NewWorld(), conformance.Steps{Writer: &steps})
			if err != nil {
				t.Fatal(err)
			}
			if failed := strings.Contains(steps.String(), limit); failed != c.failed || (after == live) != c.failed {
				t.Errorf("failed: %t, changed: %t, steps:\n%s", failed, after != live, &steps)
			}
		})
	}
}
