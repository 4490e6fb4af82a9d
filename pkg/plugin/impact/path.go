package impact

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/fielddiff"
)

// element stands in a place for any element of a list.
const element = "[]"

// place is a path without the keys of list elements: spec, containers, [], image.
type place []string

func placeOf(p fieldpath.Path) place {
	out := make(place, len(p))
	for i := range p {
		out[i] = element
		if p[i].FieldName != nil {
			out[i] = *p[i].FieldName
		}
	}
	return out
}

// at reads a place as tables write it: "spec.containers.[].image".
func at(text string) place { return strings.Split(text, ".") }

// places reads several of them.
func places(texts ...string) []place {
	out := make([]place, len(texts))
	for i, text := range texts {
		out[i] = at(text)
	}
	return out
}

// placesOf are those of the changed fields.
func placesOf(c *engine.Change) []place {
	out := make([]place, len(c.Fields))
	for i := range c.Fields {
		out[i] = placeOf(c.Fields[i].Path)
	}
	return out
}

// within tells whether the place is another one, or below it.
func (p place) within(q place) bool { return len(p) >= len(q) && slices.Equal(p[:len(q)], q) }

// meets tells whether one of the places is the other, or holds it.
func (p place) meets(q place) bool { return p.within(q) || q.within(p) }

// lookup walks down maps; nil where there is nothing.
func lookup(m map[string]any, names ...string) any {
	var v any = m
	for _, name := range names {
		below, _ := v.(map[string]any)
		v = below[name]
	}
	return v
}

func text(v any) string {
	s, _ := v.(string)
	return s
}

func boolean(v any) bool {
	b, _ := v.(bool)
	return b
}

// number reads a count; fallback stands where there is none.
func number(v any, fallback int64) int64 {
	switch n := v.(type) {
	case int64:
		return n
	case float64:
		return int64(n)
	}
	return fallback
}

func sorted[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

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

// namesShown bounds a text, not the fields beside it.
const namesShown = 3

// names lists paths for a text: "spec.replicas, spec.paused and 2 more".
func names(paths []fieldpath.Path) string {
	var out []string
	for i, p := range paths {
		if i == namesShown {
			return fmt.Sprintf("%s and %d more", strings.Join(out, ", "), len(paths)-i)
		}
		out = append(out, fielddiff.PathString(p))
	}
	return strings.Join(out, ", ")
}

// plural is "1 Pod" or "2 Pods".
func plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
