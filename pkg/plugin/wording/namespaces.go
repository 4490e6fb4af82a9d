package wording

import "strings"

// manyNamespaces are more than are named one by one.
const manyNamespaces = 10

// Namespaces names the namespaces of a run: "namespace shop", "namespaces bank, shop", "12 namespaces"; none are "all namespaces".
func Namespaces(names []string) string {
	switch n := len(names); {
	case n == 0:
		return "all namespaces"
	case n == 1:
		return "namespace " + names[0]
	case n > manyNamespaces:
		return PluralNumber(n, "namespace")
	}
	return "namespaces " + strings.Join(names, ", ")
}
