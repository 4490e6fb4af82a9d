package gatekeeper

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
)

var (
	conflictPod = schema.GroupVersionKind{Version: "v1", Kind: "Pod"}
	deployment  = schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}
)

func TestFindConflicts(t *testing.T) {
	for _, c := range []struct {
		says   string
		claims []schemaClaim
		want   string // the parties
	}{
		{"other places", claims(t, "a spec.x", "b spec.y.z"), ""},
		{"one place", claims(t, "a spec.x", "b spec.x"), ""},
		{"an end of any type may be extended", claims(t, "a spec.x", "b spec.x.y", "c spec.x.z[n: 1].v"), ""},
		{"an object and a list", claims(t, "a spec.c.x", "b spec.c[name: x].y"), "a b"},
		{"a key and all keys", claims(t, "a c[name: x].y", "b c[name: *].y", "c c[name: z]"), ""},
		{"two keys of a list", claims(t, "a p[name: x].y", "b p[containerPort: 1].y", "c p[name: y].z"), "a b c"},
		{"two keys deeper down", claims(t, "a c[name: *].p[name: x].y", "b c[name: x].p[port: 1].y"), "a b"},
		{"a set and a list", append(claims(t, "a c[name: x].y"), claim(t, "b c", typeSet)), "a b"},
		{"a set and an object", append(claims(t, "a c.y"), claim(t, "b c", typeSet)), "a b"},
		{"a set and a string", []schemaClaim{claim(t, "a x.i", typeString), claim(t, "b x.i", typeSet)}, "a b"},
		{"a set and any value", append(claims(t, "a c"), claim(t, "b c", typeSet)), ""},
		{"below what ends", append(claims(t, "a x.y", "b x.y.z", "c x.y"), ending(t, "d x.y")), "b d"},
		{"two that end", []schemaClaim{ending(t, "a x.y"), ending(t, "b x.y")}, ""},
		{"other kinds", []schemaClaim{of(deployment, claims(t, "a c.x")[0]), claims(t, "b c[name: x].y")[0]}, ""},
		{"one of several kinds", []schemaClaim{both(claims(t, "a c.x")[0]), claims(t, "b c[name: x].y")[0]}, "a b"},
		{"a third is not drawn in", claims(t, "a c.x", "b c[name: x].y", "c d.x"), "a b"},
	} {
		t.Run(c.says, func(t *testing.T) {
			found := findConflicts(c.claims)
			if got := strings.Join(slices.Sorted(maps.Keys(found)), " "); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

func claims(t *testing.T, list ...string) []schemaClaim {
	t.Helper()
	var out []schemaClaim
	for _, text := range list {
		out = append(out, claim(t, text, typeUnknown))
	}
	return out
}

// claim reads "id location".
func claim(t *testing.T, text string, terminal nodeType) schemaClaim {
	t.Helper()
	id, place, _ := strings.Cut(text, " ")
	return of(conflictPod, schemaClaim{ID: id, Name: "mutator " + id, Location: parsed(t, place), Terminal: terminal})
}

func ending(t *testing.T, text string) schemaClaim {
	c := claim(t, text, typeUnknown)
	c.MustTerminate = true
	return c
}

func of(gvk schema.GroupVersionKind, c schemaClaim) schemaClaim {
	c.Types = []binding{{GroupVersionKind: gvk, Operation: engine.OperationUpdate}}
	return c
}

func both(c schemaClaim) schemaClaim {
	types := slices.Concat(of(conflictPod, c).Types, of(deployment, c).Types)
	c.Types = types
	return c
}
