package request

import (
	"strings"

	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

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
	var names []string
	for p := range s.Leaves().All() {
		names = append(names, p.String())
	}
	return few(names)
}

// few returns the first names, and whether there are more.
func few(names []string) string {
	const most = 2
	if len(names) > most {
		names = append(names[:most:most], "...")
	}
	return strings.Join(names, ", ")
}
