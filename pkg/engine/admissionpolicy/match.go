package admissionpolicy

import (
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/selector"
)

// Constraints select requests. Without Rules they select all that nothing else
// keeps out.
type Constraints struct {
	Rules, Excluded     []Rule
	Namespaces, Objects *selector.Labels // nil selects everything
	Equivalent          bool             // other versions of the same resource count too
}

// Rule names resources and operations; "*" stands for all.
type Rule struct {
	Groups, Versions []string
	Resources        []string // "pods", "pods/status", "*", "*/*", "pods/*"
	Operations       []string
	Scope            string   // Namespaced or Cluster; anything else is both
	Names            []string // of objects; none for all
}

// Request is an admission request that constraints may select.
type Request struct {
	Resource    schema.GroupVersionResource
	Subresource string
	Operation   engine.Operation
	// Namespace is that of the object, and a Namespace's own name.
	Namespace, Name   string
	Object, OldObject *unstructured.Unstructured
	// NamespaceLabels are the labels of the object's Namespace; its error says why
	// they are not known.
	NamespaceLabels func() (map[string]string, error)
	// Served tells whether the server has the resource in a version too.
	Served func(version string) bool
}

// Miss is the reason why constraints do not select a request.
type Miss int

// The reasons; None means that they do.
const (
	None Miss = iota
	ByResource
	ByOperation // the rules name the object, with other operations
	ByExclusion
	ByObjectSelector
	ByNamespaceSelector
)

// Verdict is what constraints say of a request. Version is the version of the
// resource that a rule names, where it is another than the request's.
type Verdict struct {
	Miss    Miss
	Version string
}

// Judge compares a request with the constraints. The error says that a selector
// of Namespaces could not be judged.
func (c *Constraints) Judge(r *Request) (Verdict, error) {
	if c.Objects != nil && !c.Objects.Matches(r.Object.GetLabels()) && (r.OldObject == nil || !c.Objects.Matches(r.OldObject.GetLabels())) {
		return Verdict{Miss: ByObjectSelector}, nil
	}
	if excluded, _ := c.find(c.Excluded, r, false); excluded {
		return Verdict{Miss: ByExclusion}, nil
	}
	var v Verdict
	if len(c.Rules) > 0 {
		var found bool
		if found, v.Version = c.find(c.Rules, r, false); !found {
			v.Miss = ByResource
			if found, _ = c.find(c.Rules, r, true); found {
				v.Miss = ByOperation
			}
		}
	}
	if v.Miss == ByResource {
		return v, nil
	}
	selected, err := c.selectsNamespace(r)
	if err == nil && !selected {
		return Verdict{Miss: ByNamespaceSelector}, nil
	}
	return v, err
}

// selectsNamespace judges the Namespace of an object, or a Namespace itself; what
// has none is always selected.
func (c *Constraints) selectsNamespace(r *Request) (bool, error) {
	if c.Namespaces == nil || (r.Namespace == "" && r.Resource.Resource != "namespaces") {
		return true, nil
	}
	labels, err := r.labelsOfNamespace()
	if err != nil {
		return false, fmt.Errorf("namespaceSelector: %w", err)
	}
	return c.Namespaces.Matches(labels), nil
}

// labelsOfNamespace are those that a selector of Namespaces selects by.
func (r *Request) labelsOfNamespace() (map[string]string, error) {
	if r.Resource.Resource == "namespaces" && r.Subresource == "" {
		return r.Object.GetLabels(), nil
	}
	return r.NamespaceLabels()
}

// find tells whether a rule names the request, and in which other version if not
// in its own. The request's own version comes first, in all rules.
func (c *Constraints) find(rules []Rule, r *Request, anyOperation bool) (found bool, version string) {
	for i := range rules {
		if rules[i].names(r, r.Resource.Version, anyOperation) {
			return true, ""
		}
	}
	if !c.Equivalent {
		return false, ""
	}
	for i := range rules {
		for _, other := range rules[i].Versions {
			if other != r.Resource.Version && other != "*" && rules[i].names(r, other, anyOperation) && r.Served(other) {
				return true, other
			}
		}
	}
	return false, ""
}

// names is an API server's judgement of one rule
// (k8s.io/apiserver/pkg/admission/plugin/webhook/predicates/rules).
func (x *Rule) names(r *Request, version string, anyOperation bool) bool {
	return listed(x.Groups, r.Resource.Group) && listed(x.Versions, version) && x.namesResource(r) && x.inScope(r) &&
		(anyOperation || listed(x.Operations, string(r.Operation))) && (len(x.Names) == 0 || slices.Contains(x.Names, r.Name))
}

func (x *Rule) namesResource(r *Request) bool {
	return slices.ContainsFunc(x.Resources, func(text string) bool {
		resource, subresource, _ := strings.Cut(text, "/")
		return (resource == "*" || resource == r.Resource.Resource) && (subresource == "*" || subresource == r.Subresource)
	})
}

func (x *Rule) inScope(r *Request) bool {
	namespaced := r.Namespace != metav1.NamespaceNone && r.Resource != schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}
	switch x.Scope {
	case "Namespaced":
		return namespaced
	case "Cluster":
		return !namespaced
	}
	return true
}

func listed(items []string, text string) bool {
	return slices.ContainsFunc(items, func(item string) bool { return item == "*" || item == text })
}
