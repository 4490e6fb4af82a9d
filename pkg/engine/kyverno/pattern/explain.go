package pattern

import (
	"fmt"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
)

// Difference is where a value does not match a pattern: the first place in the
// order in which Match looks.
type Difference struct {
	Path string // such as "labels.app" or "[0].image"; empty for the value itself
	// Anchor is Negation where the key must not be there, Existence where no element
	// of the list matches, and None for any other difference.
	Anchor    Anchor
	Want, Got any
	// Missing tells that there is no such key.
	Missing bool
}

// Below is the difference of a value that is at a path itself.
func (d Difference) Below(path string) Difference {
	switch {
	case path == "":
	case d.Path == "":
		d.Path = path
	case d.Path[0] == '[':
		d.Path = path + d.Path
	default:
		d.Path = path + "." + d.Path
	}
	return d
}

// Explain finds out why a value does not match a pattern. The two must not match.
func Explain(pattern, value any) Difference {
	return explain(pattern, value, anywhere, "")
}

func explain(pattern, value any, at place, path string) Difference {
	whole := Difference{Path: path, Want: pattern, Got: value}
	switch p := pattern.(type) {
	case map[string]any:
		v, ok := value.(map[string]any)
		if !ok {
			return whole
		}
		return explainMap(p, v, at, whole)
	case []any:
		v, ok := value.([]any)
		if !ok || len(p) == 0 {
			return whole
		}
		return explainList(p, v, whole)
	}
	if list, ok := value.([]any); ok {
		return explainElement(list, func(int) any { return pattern }, whole)
	}
	return whole
}

func explainMap(pattern, value map[string]any, at place, whole Difference) Difference {
	for _, key := range ordered(pattern) {
		if matchKey(key, pattern[key], value, at) == matched {
			continue
		}
		anchor, plain := ParseKey(key)
		if anchor == Add {
			plain = key
		}
		got, present := lookup(value, plain, at)
		path := Difference{Path: plain}.Below(whole.Path).Path
		switch {
		case anchor == Negation, anchor == Existence:
			return Difference{Path: path, Anchor: anchor, Want: pattern[key], Got: got}
		case !present || got == nil:
			return Difference{Path: path, Want: pattern[key], Missing: true}
		}
		return explain(pattern[key], got, at.child(plain), path)
	}
	return whole
}

func explainList(pattern, list []any, whole Difference) Difference {
	if _, pairs := pattern[0].([]any); !pairs {
		return explainElement(list, func(int) any { return pattern[0] }, whole)
	}
	if len(list) < len(pattern) {
		return whole
	}
	return explainElement(list[:len(pattern)], func(i int) any { return pattern[i] }, whole)
}

// explainElement is about the element that decides: one that does not match, and
// else the first that is left out.
func explainElement(list []any, pattern func(int) any, whole Difference) Difference {
	for _, decides := range []verdict{mismatched, leftOut} {
		for i, element := range list {
			if match(pattern(i), element, anywhere) == decides {
				return explain(pattern(i), element, anywhere, fmt.Sprintf("%s[%d]", whole.Path, i))
			}
		}
	}
	return whole
}

// Text says what the difference is; show words a value of the object.
func (d Difference) Text(show func(value any) string) string {
	switch {
	case d.Anchor == Negation:
		return d.Path + " must not be there"
	case d.Anchor == Existence:
		return "no element of " + d.Path + " matches"
	case d.Missing:
		return d.Path + " is not there"
	}
	return fmt.Sprintf("%s is %s and does not match %s", d.Path, show(d.Got), engine.BriefValue(d.Want))
}
