package cel

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	"k8s.io/apimachinery/pkg/runtime"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
)

// What has grown as much as there was is read as a whole again, and so is another state.
func TestChecked(t *testing.T) {
	object, next := map[string]any{"a": "1"}, map[string]any{"a": "2"}
	var none *Checked
	none.merged(&Checked{}, object, 100, size{})
	if none.of(object).fits() {
		t.Error("nothing is checked where nobody keeps it")
	}
	c := &Checked{}
	if c.of(object).fits() || c.of(nil).fits() {
		t.Error("nothing is checked at first")
	}
	c.merged(c, object, 100, size{})
	if !c.of(object).fits() || c.of(next).fits() {
		t.Error("want the state that was read, and no other one")
	}
	c.merged(c, next, 0, size{values: 60})
	if !c.of(next).fits() || c.of(object).fits() {
		t.Error("want the state that was written")
	}
	c.merged(c, next, 0, size{values: 60})
	if c.of(next).fits() {
		t.Error("120 steps were written to 100, and are not read again")
	}
}

// A patch of the parts that it names is that of the whole object, with the same error.
func TestPatchesOfParts(t *testing.T) {
	const document = `{"apiVersion":"v1","kind":"Pod","m":{"a":"1","":2},"l":[{"n":"x","e":[1,2]},{"n":"y","e":[]},{"n":"z"},true,[[1],{"k":"v"}],"text"],"-":{"0":[0]}}`
	tokens := []string{"m", "l", "l", "a", "e", "e", "n", "k", "0", "0", "1", "2", "3", "4", "5", "-", "-1", "01", "6", "", "new"}
	rng := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // a draw that stays the same
	pointer := func() string {
		text := []string{"", "/l/0", "/l/1", "/l/4"}[rng.IntN(4)]
		for range 1 + rng.IntN(3) {
			text += "/" + tokens[rng.IntN(len(tokens))]
		}
		return text
	}
	applied, narrowed := 0, 0
	for range 30_000 {
		var operations jsonpatch.Patch
		var pointers []string
		for range 1 + rng.IntN(3) {
			raw := map[string]any{"op": []string{"add", "add", "replace", "remove", "move", "copy", "test"}[rng.IntN(7)], "path": pointer(), "value": []any{"v", nil, map[string]any{}, []any{}}[rng.IntN(4)]}
			pointers = append(pointers, raw["path"].(string))
			if raw["op"] == "move" || raw["op"] == "copy" {
				raw["from"] = pointer()
				pointers = append(pointers, raw["from"].(string))
			}
			operation := jsonpatch.Operation{}
			for name, value := range raw {
				text, _ := json.Marshal(value)
				operation[name] = (*json.RawMessage)(&text)
			}
			operations = append(operations, operation)
		}
		var object map[string]any
		if err := utiljson.Unmarshal([]byte(document), &object); err != nil {
			t.Fatal(err)
		}
		before := runtime.DeepCopyJSON(object)
		e := Evaluation{budget: engine.NewBudget(t.Context()), activation: &activation{input: Input{Object: object}}}
		places := touchedBy(pointers)
		patched := func(places touched) (p patchedPart, err error) {
			defer recoverAs(&Expression{}, &err) // from what the library does to null
			return e.patchPart(places, operations)
		}
		want, wantErr := patched(nil)
		part, err := patched(places)
		text, _ := json.Marshal(operations)
		if fmt.Sprint(err) != fmt.Sprint(wantErr) {
			t.Fatalf("%s: got error %v, want %v", text, err, wantErr)
		}
		if err != nil {
			continue
		}
		applied++
		if list, _ := part.read["l"].([]any); slices.Contains(list, nil) {
			narrowed++
		}
		draft := &engine.Draft{}
		got := putting{maps: draft, lists: draft}.put(places, object, part.written)
		if diff := cmp.Diff(want.written, got); diff != "" {
			t.Fatalf("%s (-want +got):\n%s", text, diff)
		}
		if diff := cmp.Diff(before, object); diff != "" {
			t.Fatalf("%s: the object is modified:\n%s", text, diff)
		}
	}
	if applied < 1500 || narrowed < 500 {
		t.Errorf("%d patches applied, %d of which to elements of a list", applied, narrowed)
	}
}
