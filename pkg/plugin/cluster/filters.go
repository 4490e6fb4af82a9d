package cluster

import (
	"context"
	"regexp"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/selector"
)

// Filters are Kyverno's resourceFilters: objects that its webhooks let pass
// without looking at them. The zero value filters nothing.
type Filters []filter

type filter struct {
	kind            selector.Kind
	namespace, name string
}

// bracketed is one entry, "[Kind,namespace,name]" (Kyverno, pkg/config/types.go).
var bracketed = regexp.MustCompile(`\[([^\[\]]*)\]`)

// ParseFilters reads the text of resourceFilters. Parts that are left out stand
// for everything; an entry that names no kind is passed over, as Kyverno does.
func ParseFilters(text string) Filters {
	var filters Filters
	for _, match := range bracketed.FindAllStringSubmatch(text, -1) {
		parts := append(strings.Split(match[1], ","), "*", "*")
		kind, err := selector.ParseKind(strings.TrimSpace(parts[0]))
		if err != nil || len(parts) > 5 {
			continue
		}
		filters = append(filters, filter{kind, strings.TrimSpace(parts[1]), strings.TrimSpace(parts[2])})
	}
	return filters
}

// Match reports whether an object is filtered out. A Namespace is also matched by
// its name where other objects are by their namespace.
func (f Filters) Match(gvk schema.GroupVersionKind, namespace, name string) bool {
	for _, entry := range f {
		if !entry.kind.Matches(gvk, "") {
			continue
		}
		if selector.MatchWildcard(entry.namespace, namespace) && selector.MatchWildcard(entry.name, name) {
			return true
		}
		if gvk.Kind == "Namespace" && gvk.Group == "" && selector.MatchWildcard(entry.namespace, name) {
			return true
		}
	}
	return false
}

// ResourceFilters reads the filters of the Kyverno that is installed in its
// usual place; there are none where Kyverno is not installed. An error for which
// apierrors.IsForbidden holds means that the user may not read them.
func ResourceFilters(ctx context.Context, from engine.Reader) (Filters, error) {
	u, err := from.Get(ctx, engine.ObjectKey{
		GroupKind: schema.GroupKind{Kind: "ConfigMap"}, Version: "v1", Namespace: "kyverno", Name: "kyverno",
	})
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	text, _, err := unstructured.NestedString(u.Object, "data", "resourceFilters")
	return ParseFilters(text), err
}
