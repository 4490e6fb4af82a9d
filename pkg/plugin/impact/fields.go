package impact

import (
	"fmt"
	"slices"
	"strings"

	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
)

// touching are the paths of the changed fields that meet a place.
func touching(c *engine.Change, p place) []fieldpath.Path {
	var out []fieldpath.Path
	for i := range c.Fields {
		if placeOf(c.Fields[i].Path).Meets(p) {
			out = append(out, c.Fields[i].Path)
		}
	}
	return out
}

// within are the paths of the changed fields that are in a place.
func within(c *engine.Change, p place) []fieldpath.Path {
	return slices.DeleteFunc(touching(c, p), func(changed fieldpath.Path) bool { return !placeOf(changed).Within(p) })
}

// namesShown bounds a text, not the fields beside it.
const namesShown = 3

// names lists paths for a text: "spec.replicas, spec.paused and 2 more".
func names(paths []fieldpath.Path) string {
	var out []string
	for i, p := range paths {
		if i == namesShown {
			return fmt.Sprintf("%s and %d more", strings.Join(out, ", "), len(paths)-i)
		}
		out = append(out, engine.PathString(p))
	}
	return strings.Join(out, ", ")
}
