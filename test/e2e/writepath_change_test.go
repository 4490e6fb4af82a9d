package e2e

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	utiljson "k8s.io/apimachinery/pkg/util/json"
)

// mutation is what a policy would do to an object. Paths are like
// "spec|template|spec|containers|[app]|image": a step in brackets names the list
// element of that name, of that value, of a field ("[protocol=UDP]") or of a
// position ("[#0]").
type mutation func(object map[string]any)

func set(path string, v any) mutation {
	return edit(path, func(any) any { return copyOf(v) })
}

func remove(path string) mutation {
	return edit(path, func(any) any { return absent{} })
}

// add appends to a list what is not there yet; "there" is the element of the
// same name, or what one of the selectors finds.
func add(path string, v any, unless ...string) mutation {
	return insert(path, -1, v, unless...)
}

func prepend(path string, v any, unless ...string) mutation {
	return insert(path, 0, v, unless...)
}

// insert puts an element before a position, or at the end where that is -1.
func insert(path string, position int, v any, unless ...string) mutation {
	return edit(path, func(old any) any {
		list, _ := old.([]any)
		selectors := unless
		if len(selectors) == 0 {
			selectors = []string{"[" + nameOf(v) + "]"}
		}
		for _, s := range selectors {
			if find(list, s) >= 0 {
				return list
			}
		}
		if position < 0 {
			position = len(list)
		}
		return slices.Insert(slices.Clone(list), min(position, len(list)), copyOf(v))
	})
}

// toFront moves an element.
func toFront(path, selector string) mutation {
	return edit(path, func(old any) any {
		list := slices.Clone(old.([]any))
		i := find(list, selector)
		moved := list[i]
		return slices.Insert(slices.Delete(list, i, i+1), 0, moved)
	})
}

// withoutDuplicates keeps the first element of each name.
func withoutDuplicates(path string) mutation {
	return edit(path, func(old any) any {
		seen := map[string]bool{}
		return slices.DeleteFunc(slices.Clone(old.([]any)), func(x any) bool {
			name := nameOf(x)
			defer func() { seen[name] = true }()
			return seen[name]
		})
	})
}

func all(ms ...mutation) mutation {
	return func(object map[string]any) {
		for _, m := range ms {
			m(object)
		}
	}
}

type absent struct{}

// edit replaces the value at a path; maps on the way are made.
func edit(path string, f func(old any) any) mutation {
	return func(object map[string]any) {
		walk(object, strings.Split(path, "|"), f)
	}
}

func walk(v any, steps []string, f func(any) any) any {
	if len(steps) == 0 {
		return f(v)
	}
	step := steps[0]
	if strings.HasPrefix(step, "[") {
		list, _ := v.([]any)
		i := find(list, step)
		if i < 0 {
			return v
		}
		n := walk(list[i], steps[1:], f)
		if n == (absent{}) {
			return slices.Delete(slices.Clone(list), i, i+1)
		}
		list[i] = n
		return list
	}
	m, _ := v.(map[string]any)
	if m == nil {
		m = map[string]any{}
	}
	n := walk(m[step], steps[1:], f)
	if n == (absent{}) {
		delete(m, step)
	} else {
		m[step] = n
	}
	return m
}

// find gives the position of the first element that a selector names, or -1.
func find(list []any, selector string) int {
	selector = strings.Trim(selector, "[]")
	if n, ok := strings.CutPrefix(selector, "#"); ok {
		if i, err := strconv.Atoi(n); err == nil && i < len(list) {
			return i
		}
		return -1
	}
	field, want, ok := strings.Cut(selector, "=")
	if !ok {
		field, want = "name", selector
	}
	return slices.IndexFunc(list, func(x any) bool {
		if m, ok := x.(map[string]any); ok {
			return fmt.Sprint(m[field]) == want
		}
		return fmt.Sprint(x) == want
	})
}

func nameOf(v any) string {
	m, ok := v.(map[string]any)
	if !ok {
		return fmt.Sprint(v)
	}
	if name, ok := m["name"]; ok {
		return fmt.Sprint(name)
	}
	// Without a name, any one field will do.
	for _, k := range slices.Sorted(maps.Keys(m)) {
		return k + "=" + fmt.Sprint(m[k])
	}
	return ""
}

// copyOf gives values the types that they have when read from JSON. Whole
// floats stay floats: JSON would hide what that case is about.
func copyOf(v any) any {
	if f, ok := v.(float64); ok {
		return f
	}
	text, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	var wrapped map[string]any
	if err := utiljson.Unmarshal([]byte(`{"v":`+string(text)+`}`), &wrapped); err != nil {
		panic(err)
	}
	return wrapped["v"]
}
