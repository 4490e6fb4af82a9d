package gatekeeper

import (
	"maps"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"
)

// write writes a value.
func write(value any) func(any, bool) (assignment, error) {
	return func(any, bool) (assignment, error) { return assignment{Write: true, Value: value}, nil }
}

// create asks for parents alone.
func create(any, bool) (assignment, error) { return assignment{Create: true}, nil }

// TestWalk runs testdata/walk/walk.txtar: each case is a file of YAML fields
// (location, value, tests, object) and what is wanted: the object, or the error.
func TestWalk(t *testing.T) {
	archive, err := txtar.ParseFile("testdata/walk/walk.txtar")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range archive.Files {
		t.Run(file.Name, func(t *testing.T) {
			c := decode(t, file.Data)
			object, _ := c["object"].(map[string]any)
			before := runtime.DeepCopyJSON(object)
			path := parsed(t, c["location"].(string))
			set := write(c["value"])
			if c["value"] == "create" {
				set = create
			}
			out, err := walk(object, way{Path: path, Tests: tests(t, path, c["tests"]), Set: set})
			if diff := cmp.Diff(before, object); diff != "" {
				t.Errorf("the object that was given is modified: %s", diff)
			}
			if want, _ := c["error"].(string); want != "" {
				if err == nil || err.Error() != want {
					t.Fatalf("\n got %v\nwant %s", err, want)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			want, changes := c["want"].(map[string]any)
			if !changes {
				want = before
			}
			if diff := cmp.Diff(want, out.Object); diff != "" {
				t.Errorf("(-want +got) %s", diff)
			}
			if out.Changed != changes {
				t.Errorf("changed: %t", out.Changed)
			}
			if skip, _ := c["skip"].(string); skip != "" && (out.Skip == nil || out.Skip.Error() != skip) {
				t.Errorf("skipped by %v, want %s", out.Skip, skip)
			}
		})
	}
}

func decode(t *testing.T, text []byte) map[string]any {
	t.Helper()
	var out map[string]any
	if err := yaml.Unmarshal(text, &out); err != nil {
		t.Fatal(err)
	}
	return integers(out).(map[string]any)
}

// integers are int64, as in objects that an API server sent.
func integers(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for key := range v {
			v[key] = integers(v[key])
		}
	case []any:
		for i := range v {
			v[i] = integers(v[i])
		}
	case float64:
		if v == float64(int64(v)) {
			return int64(v)
		}
	}
	return v
}

// A later write to one element is not in the others.
func TestWalkElementsAreIndependent(t *testing.T) {
	object := decode(t, []byte("c: [{name: a}, {name: b}]"))
	out, err := walk(object, way{Path: parsed(t, "c[name: *].s"), Set: write(map[string]any{})})
	if err != nil {
		t.Fatal(err)
	}
	out, err = walk(out.Object, way{Path: parsed(t, "c[name: a].s.x"), Set: write(false)})
	if err != nil {
		t.Fatal(err)
	}
	want := decode(t, []byte("c: [{name: a, s: {x: false}}, {name: b, s: {}}]"))
	if diff := cmp.Diff(want, out.Object); diff != "" {
		t.Error(diff)
	}
}

func parsed(t testing.TB, text string) location {
	t.Helper()
	p, err := parseLocation(text)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func tests(t *testing.T, path location, raw any) pathTests {
	t.Helper()
	written, _ := raw.(map[string]any)
	var list []pathTest
	for subPath, condition := range maps.All(written) {
		list = append(list, pathTest{SubPath: parsed(t, subPath), Condition: existence(condition.(string))})
	}
	compiled, err := compileTests(path, list)
	if err != nil {
		t.Fatal(err)
	}
	return compiled
}

// FuzzWalk holds that no location and no object make the walk panic, that it
// never modifies what it is given, and that writing twice is writing once.
func FuzzWalk(f *testing.F) {
	archive, err := txtar.ParseFile("testdata/walk/walk.txtar")
	if err != nil {
		f.Fatal(err)
	}
	for _, file := range archive.Files {
		text := string(file.Data)
		_, rest, _ := strings.Cut(text, "location: ")
		place, _, _ := strings.Cut(rest, "\n")
		f.Add(strings.Trim(place, `'"`), text, "x")
	}
	f.Fuzz(func(t *testing.T, place, text, value string) {
		path, err := parseLocation(place)
		if err != nil || len(path) == 0 {
			return
		}
		var object map[string]any
		if err := yaml.Unmarshal([]byte(text), &object); err != nil || object == nil {
			return
		}
		integers(object)
		before := runtime.DeepCopyJSON(object)
		var v any = value
		if list, isList := path.last().(listNode); isList {
			if list.glob() {
				return // which no mutator has
			}
			v = map[string]any{list.Key: list.Value, "v": value}
		}
		out, err := walk(object, way{Path: path, Set: write(v)})
		if diff := cmp.Diff(before, object); diff != "" {
			t.Fatalf("the object that was given is modified: %s", diff)
		}
		if err != nil {
			return
		}
		again, err := walk(out.Object, way{Path: path, Set: write(v)})
		if err == nil && again.Changed && !writesItsOwnWay(path) {
			t.Fatalf("%s: writing again changes again: %s", path, cmp.Diff(out.Object, again.Object))
		}
	})
}

// writesItsOwnWay reports whether the end of a path may be on the way to it: the key
// of an element that the path goes through. Mutators with such locations do not
// compile, or do not converge.
func writesItsOwnWay(p location) bool {
	for _, node := range p {
		if list, ok := node.(listNode); ok && p.last() == fieldNode(list.Key) {
			return true
		}
	}
	return false
}
