package request

import (
	"strings"

	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/value"
)

// valueAt finds what a path names: by field, by index or by the key of a list
// element. Of duplicate keys it finds the first.
func valueAt(v any, p fieldpath.Path) (any, bool) {
	for _, e := range p {
		var ok bool
		switch x := v.(type) {
		case map[string]any:
			if e.FieldName == nil {
				return nil, false
			}
			v, ok = x[*e.FieldName]
		case []any:
			v, ok = elementOf(x, e)
		}
		if !ok {
			return nil, false
		}
	}
	return v, true
}

func elementOf(list []any, e fieldpath.PathElement) (any, bool) {
	switch {
	case e.Index != nil:
		if *e.Index < 0 || *e.Index >= len(list) {
			return nil, false
		}
		return list[*e.Index], true
	case e.Key != nil:
		for _, x := range list {
			if element, ok := x.(map[string]any); ok && hasKey(element, *e.Key) {
				return x, true
			}
		}
	}
	return nil, false
}

func hasKey(element map[string]any, key value.FieldList) bool {
	for _, k := range key {
		v, ok := element[k.Name]
		if !ok || !value.Equals(value.NewValueInterface(v), k.Value) {
			return false
		}
	}
	return true
}

// isListKey reports whether a path ends in a key field of the list element that
// it leads through.
func isListKey(p fieldpath.Path) bool {
	n := len(p)
	if n < 2 || p[n-2].Key == nil || p[n-1].FieldName == nil {
		return false
	}
	for _, k := range *p[n-2].Key {
		if k.Name == *p[n-1].FieldName {
			return true
		}
	}
	return false
}

// below reports whether p is below root.
func below(p, root fieldpath.Path) bool {
	return len(p) > len(root) && p[:len(root)].Equals(root)
}

// brief names the first fields of a set, for messages.
func brief(s *fieldpath.Set) string {
	const most = 2
	var names []string
	more := 0
	for p := range s.Leaves().All() {
		if len(names) < most {
			names = append(names, p.String())
		} else {
			more++
		}
	}
	return enumerate(names, more)
}

func enumerate(names []string, more int) string {
	text := strings.Join(names, ", ")
	if more > 0 {
		text += ", ..."
	}
	return text
}
