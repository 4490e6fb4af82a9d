package main

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"reflect"
	"slices"
	"strings"
)

// answer is what one program made of an object with one policy.
type answer struct {
	object map[string]any
	errors []string
}

// finding is a difference, with the smallest of the objects that show it.
type finding struct {
	policy, between, what string // of which answers, and of what sort
	paths                 []string
	count, size           int
	operation             string
	object                map[string]any
	one, other            answer
}

func (f *finding) key() string {
	return strings.Join(append([]string{f.policy, f.between, f.what}, f.paths...), "\x00")
}

// findings are kept by what they have in common.
type findings map[string]*finding

func (all findings) add(f *finding) {
	content, _ := json.Marshal(f.object) // it was read from JSON
	f.size = len(content)
	old, ok := all[f.key()]
	if !ok {
		f.count = 1
		all[f.key()] = f
		return
	}
	old.count++
	if f.size < old.size {
		f.count = old.count
		*old = *f
	}
}

// compare says of what sort the difference of two answers is, and at which fields; empty where there is none. The first
// answer is the older: of the old policy, or Kyverno's.
func compare(in map[string]any, one, other answer) (what string, paths []string) {
	a, b := number(one.object), number(other.object)
	switch {
	case len(other.errors) > 0 && len(one.errors) == 0:
		return "denied", nil
	case len(one.errors) > 0 && len(other.errors) > 0:
		return "", nil
	case reflect.DeepEqual(a, b):
		return "", nil
	case reflect.DeepEqual(sorted(pruned(a)), sorted(pruned(b))):
		if reflect.DeepEqual(pruned(a), pruned(b)) {
			return "empty", differing(a, b, "")
		}
		for _, path := range differing(a, b, "") {
			list, _, _ := strings.Cut(path, "[]")
			paths = append(paths, list)
		}
		return "order", slices.Compact(paths)
	}
	was := pruned(number(in))
	switch paths = differing(pruned(a), pruned(b), ""); {
	case reflect.DeepEqual(pruned(a), was):
		what = "more"
	case reflect.DeepEqual(pruned(b), was):
		what = "less"
	default:
		what = "other"
	}
	if len(one.errors) > 0 {
		what += " than an error"
	}
	return what, paths
}

// number has all numbers as double.
func number(v any) any {
	return transform(v, func(v any) any {
		if r := reflect.ValueOf(v); r.CanInt() {
			return float64(r.Int())
		}
		return v
	})
}

// pruned is without what is empty: a server reads it as absent.
func pruned(v any) any {
	return transform(v, func(v any) any {
		switch t := v.(type) {
		case map[string]any:
			maps.DeleteFunc(t, func(_ string, e any) bool { return e == nil })
			if len(t) == 0 {
				return nil
			}
		case []any:
			if len(t) == 0 {
				return nil
			}
		}
		return v
	})
}

// sorted has the elements of all lists in one order.
func sorted(v any) any {
	return transform(v, func(v any) any {
		if t, ok := v.([]any); ok {
			slices.SortFunc(t, func(a, b any) int { return strings.Compare(fmt.Sprint(a), fmt.Sprint(b)) })
		}
		return v
	})
}

// transform is a copy of a value, changed from its leaves up.
func transform(v any, f func(any) any) any {
	switch t := v.(type) {
	case map[string]any:
		out := make(map[string]any, len(t))
		for k, e := range t {
			out[k] = transform(e, f)
		}
		return f(out)
	case []any:
		out := make([]any, len(t))
		for i, e := range t {
			out[i] = transform(e, f)
		}
		return f(out)
	}
	return f(v)
}

// differing are the fields in which two values differ, with [] for any element.
func differing(a, b any, at string) []string {
	var out []string
	switch x := a.(type) {
	case map[string]any:
		if y, ok := b.(map[string]any); ok {
			for k := range x {
				out = append(out, differing(x[k], y[k], at+"."+k)...)
			}
			for k := range y {
				if _, ok := x[k]; !ok {
					out = append(out, at+"."+k)
				}
			}
			slices.Sort(out)
			return slices.Compact(out)
		}
	case []any:
		if y, ok := b.([]any); ok && len(x) == len(y) {
			for i := range x {
				out = append(out, differing(x[i], y[i], at+"[]")...)
			}
			slices.Sort(out)
			return slices.Compact(out)
		}
	}
	if reflect.DeepEqual(a, b) {
		return nil
	}
	return []string{at}
}

// print writes the findings as Markdown.
func (all findings) print(out io.Writer) {
	for _, f := range slices.SortedFunc(maps.Values(all), func(a, b *finding) int { return strings.Compare(a.key(), b.key()) }) {
		fmt.Fprintf(out, "## %s\n\n%s: **%s** at %s, %d objects; %s\n\n", f.policy, f.between, f.what, strings.Join(f.paths, " "), f.count, f.operation)
		for _, part := range []struct {
			name  string
			value any
		}{{"object", f.object}, {"one", f.one.object}, {"errors", f.one.errors}, {"other", f.other.object}, {"errors", f.other.errors}} {
			content, _ := json.Marshal(part.value) // it was read from JSON
			if string(content) != "null" {
				fmt.Fprintf(out, "- %s: `%s`\n", part.name, content)
			}
		}
		fmt.Fprintln(out)
	}
}
