package selector

import (
	"regexp"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// ResourceFilters are Kyverno's resourceFilters: objects that it passes over, whatever its
// policies match. The zero value filters nothing.
type ResourceFilters []resourceFilter

type resourceFilter struct {
	kind            Kind
	namespace, name string
}

// bracketed is one entry, "[Kind,namespace,name]" (Kyverno, pkg/config/types.go).
var bracketed = regexp.MustCompile(`\[([^\[\]]*)\]`)

// ParseResourceFilters reads the text of resourceFilters. Parts that are left out stand
// for everything; an entry that names no kind is passed over, as Kyverno does.
func ParseResourceFilters(text string) ResourceFilters {
	var filters ResourceFilters
	for _, match := range bracketed.FindAllStringSubmatch(text, -1) {
		parts := append(strings.Split(match[1], ","), "*", "*")
		kind, err := ParseKind(strings.TrimSpace(parts[0]))
		if err != nil || len(parts) > 5 {
			continue
		}
		filters = append(filters, resourceFilter{kind, strings.TrimSpace(parts[1]), strings.TrimSpace(parts[2])})
	}
	return filters
}

// Match reports whether an object, or a subresource of it, is filtered out. A Namespace is
// also matched by its name where other objects are by their namespace.
func (f ResourceFilters) Match(gvk schema.GroupVersionKind, subresource, namespace, name string) bool {
	for _, entry := range f {
		if !entry.kind.Matches(gvk, subresource) {
			continue
		}
		if MatchWildcard(entry.namespace, namespace) && MatchWildcard(entry.name, name) {
			return true
		}
		if gvk.Kind == "Namespace" && gvk.Group == "" && MatchWildcard(entry.namespace, name) {
			return true
		}
	}
	return false
}
