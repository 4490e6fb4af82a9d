package selector

import (
	"fmt"
	"regexp"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Kind is a pattern of kinds as Kyverno writes them: each part may contain `*` and `?` and is case sensitive.
// An empty Subresource is the object itself.
type Kind struct {
	Group, Version, Kind, Subresource string
}

// versionText matches an API version in the first part of a kind, as Kyverno does (pkg/utils/kube/kind.go).
var versionText = regexp.MustCompile(`^(v\d+((alpha|beta)\d+)?|\*)$`)

// ParseKind parses Kyverno's kind grammar: "Pod", "v1/Pod", "apps/v1/Deployment", "Pod/exec", "Pod.status",
// "v1/Pod/exec", "apps/v1/Deployment/scale", "*/*". A missing part stands for any group or version; only
// "*/*", everything with all subresources, opens the subresource too. More than four parts, or a missing
// kind, are an error.
func ParseKind(text string) (Kind, error) {
	parts := strings.Split(text, "/")
	last := len(parts) - 1
	parts = append(parts[:last:last], strings.Split(parts[last], ".")...)
	var kind Kind
	switch len(parts) {
	case 1:
		kind = Kind{"*", "*", parts[0], ""}
	case 2:
		kind = parseTwoParts(parts[0], parts[1])
	case 3:
		kind = Kind{parts[0], parts[1], parts[2], ""}
		if versionText.MatchString(parts[0]) {
			kind = Kind{"*", parts[0], parts[1], parts[2]}
		}
	case 4:
		kind = Kind{parts[0], parts[1], parts[2], parts[3]}
	default:
		return Kind{}, fmt.Errorf("kind %q has %d parts; the longest form is group/version/Kind/subresource", text, len(parts))
	}
	if kind.Kind == "" {
		return Kind{}, fmt.Errorf("kind %q names no kind", text)
	}
	return kind, nil
}

func parseTwoParts(first, second string) Kind {
	switch {
	case first == "*" && second == "*":
		return Kind{"*", "*", "*", "*"}
	case first == "*" && strings.ToLower(second) == second: // "*/scale": this subresource of any kind
		return Kind{"*", "*", "*", second}
	case versionText.MatchString(first):
		return Kind{"*", first, second, ""}
	default:
		return Kind{"*", "*", first, second}
	}
}

// Matches reports whether a type, or a subresource of it, is of this kind. A pattern for Pods also covers
// their ephemeral containers, as in Kyverno.
func (k Kind) Matches(gvk schema.GroupVersionKind, subresource string) bool {
	if !MatchWildcard(k.Kind, gvk.Kind) || !MatchWildcard(k.Version, gvk.Version) ||
		!MatchWildcard(k.Group, gvk.Group) {
		return false
	}
	if MatchWildcard(k.Subresource, subresource) {
		return true
	}
	pod := gvk.Group == "" && gvk.Version == "v1" && gvk.Kind == "Pod"
	return pod && subresource == "ephemeralcontainers"
}

// String returns the shortest string that parses to the kind.
func (k Kind) String() string {
	if k == (Kind{"*", "*", "*", "*"}) {
		return "*/*"
	}
	text := k.Kind
	if k.Subresource != "" {
		text += "/" + k.Subresource
	}
	for _, longer := range []string{text, k.Version + "/" + text, k.Group + "/" + k.Version + "/" + text} {
		if parsed, err := ParseKind(longer); err == nil && parsed == k {
			return longer
		}
	}
	return k.Group + "/" + k.Version + "/" + k.Kind + "/" + k.Subresource
}

// ResourceFilters are Kyverno's resourceFilters: objects that it ignores, whatever its policies match. The
// zero value filters nothing.
type ResourceFilters []resourceFilter

type resourceFilter struct {
	kind            Kind
	namespace, name string
}

// bracketed is one entry, "[Kind,namespace,name]" (Kyverno, pkg/config/types.go).
var bracketed = regexp.MustCompile(`\[([^\[\]]*)\]`)

// ParseResourceFilters reads a resourceFilters value. Missing parts stand for everything; an entry without a
// kind is ignored, as by Kyverno.
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

// Match reports whether an object, or a subresource of it, is filtered out. A Namespace also matches by its
// name where other objects match by their namespace.
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
