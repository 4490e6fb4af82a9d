package impact

import (
	"slices"

	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
)

// touching are the paths of the changed fields that meet a place.
func touching(c *engine.Change, p place) []fieldpath.Path {
	var out []fieldpath.Path
	for i := range c.Fields {
		if placeOf(c.Fields[i].Path).meets(p) {
			out = append(out, c.Fields[i].Path)
		}
	}
	return out
}

// within are the paths of the changed fields that are in a place.
func within(c *engine.Change, p place) []fieldpath.Path {
	return slices.DeleteFunc(touching(c, p), func(changed fieldpath.Path) bool { return !placeOf(changed).within(p) })
}

// patterns lists paths for a text about several objects: "spec.containers[*].env[*]".
func patterns(paths []fieldpath.Path) string {
	out := make([]string, len(paths))
	for i, p := range paths {
		out[i] = engine.PathPattern(p)
	}
	slices.Sort(out)
	return engine.Few(slices.Compact(out))
}

// names lists paths for a text: "spec.replicas, spec.paused and 2 more".
func names(paths []fieldpath.Path) string {
	out := make([]string, len(paths))
	for i, p := range paths {
		out[i] = engine.PathString(p)
	}
	return engine.Few(out)
}
