package diff

import (
	"strconv"

	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// Copy is a copy of an object in which values are replaced by strings. It is not safe for concurrent use.
type Copy struct{ of, now any }

// CopyOf returns a Copy of an object in which nothing is replaced.
func CopyOf(object any) *Copy { return &Copy{object, clone(object)} }

// Object is the object with all that was replaced.
func (c *Copy) Object() any { return c.now }

// Replace puts a string in the place of the value at a path. Where the object has no such path, nothing is done.
func (c *Copy) Replace(p fieldpath.Path, s string) {
	of, put := c.of, func(v any) { c.now = v }
	now := c.now
	for _, e := range p {
		token, below, ok := step(of, e)
		if !ok {
			return
		}
		switch in := now.(type) {
		case map[string]any:
			now, put = in[token], func(v any) { in[token] = v }
		case []any:
			i, _ := strconv.Atoi(token) // a token of step
			now, put = in[i], func(v any) { in[i] = v }
		default:
			return // a string that was put there
		}
		of = below
	}
	put(s)
}

func clone(v any) any {
	switch v := v.(type) {
	case map[string]any:
		out := make(map[string]any, len(v))
		for name, below := range v {
			out[name] = clone(below)
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i, below := range v {
			out[i] = clone(below)
		}
		return out
	}
	return v
}
