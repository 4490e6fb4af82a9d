package mutatingpolicy

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
)

// Candidate is a request that constraints may select.
type Candidate struct {
	engine.Target
	Resource  schema.GroupVersionResource
	Operation engine.Operation // empty for one that is looked at without a request: any rule's operations do
	Context   context.Context  // of the evaluation that asks; a candidate does not outlive it
	Reader    engine.Reader    // nil when there is nothing to read Namespaces from
	Assumed   []engine.Warning // out: what had to be taken for granted

	anyVersion bool // the version that the object was read in does not count
}

// UndecidedError is a selector that could not be judged.
type UndecidedError struct {
	Field, Reason string
}

// Error names the selector and what is missing.
func (e *UndecidedError) Error() string { return fmt.Sprintf("%s: %s", e.Field, e.Reason) }

// Missed tells why the constraints do not select the request. The error is an
// *UndecidedError.
func (c *Constraints) Missed(r *Candidate) (Mismatch, error) {
	if c.objects != nil && !c.objects.Matches(r.Object.GetLabels()) && !oldMatches(c, r) {
		return Mismatch{criterion: byObjectSelector, of: c}, nil
	}
	if anyFor(c.excluded, r) {
		return Mismatch{criterion: byExclusion, of: c}, nil
	}
	if len(c.rules) > 0 && !anyFor(c.rules, r) {
		asked := *r
		asked.Operation = ""
		if anyFor(c.rules, &asked) {
			return Mismatch{criterion: byOperation, of: c}, nil
		}
		asked.anyVersion = true
		if anyFor(c.rules, &asked) {
			return Mismatch{criterion: byVersion, of: c}, nil
		}
		return Mismatch{criterion: byResource, of: c}, nil
	}
	return c.missedNamespace(r)
}

func oldMatches(c *Constraints, r *Candidate) bool {
	return r.OldObject != nil && c.objects.Matches(r.OldObject.GetLabels())
}

func (c *Constraints) missedNamespace(r *Candidate) (Mismatch, error) {
	if c.namespaces == nil || (r.Object.GetNamespace() == "" && !r.isNamespace()) {
		return Mismatch{}, nil // a cluster-scoped object is never held back by the selector
	}
	labels, err := r.ownNamespaceLabels()
	if err != nil {
		return Mismatch{}, err
	}
	if !c.namespaces.Matches(labels) {
		return Mismatch{criterion: byNamespaceSelector, of: c}, nil
	}
	return Mismatch{}, nil
}

func (r *Candidate) isNamespace() bool {
	return r.Resource.GroupResource() == schema.GroupResource{Resource: "namespaces"}
}

// ownNamespaceLabels are those that a namespaceSelector is about: a Namespace's
// own, and those of its Namespace for any other object.
func (r *Candidate) ownNamespaceLabels() (map[string]string, error) {
	if r.isNamespace() {
		return r.Object.GetLabels(), nil
	}
	return r.namespaceLabels()
}

// namespaceLabels are the labels of the object's Namespace. Where manifests
// leave out the Namespace, it has the label that every one has and, as far as
// anybody knows, no other; where it is there and cannot be read, nothing is known.
func (r *Candidate) namespaceLabels() (map[string]string, error) {
	if r.Namespace != nil {
		return r.Namespace.GetLabels(), nil
	}
	name, reason := r.Object.GetNamespace(), "there is nothing to read it from"
	if r.Reader != nil {
		key := engine.ObjectKey{GroupKind: schema.GroupKind{Kind: "Namespace"}, Version: "v1", Name: name}
		namespace, err := r.Reader.Get(r.Context, key)
		switch {
		case err == nil:
			return namespace.GetLabels(), nil
		case apierrors.IsNotFound(err):
			r.assume(engine.Warning("Namespace " + name + " is not there to read; it is taken to have no labels of its own"))
			return map[string]string{corev1.LabelMetadataName: name}, nil
		}
		reason = err.Error()
	}
	return nil, &UndecidedError{
		Field:  "namespaceSelector",
		Reason: "the labels of Namespace " + name + " are not known: " + reason,
	}
}

func (r *Candidate) assume(what engine.Warning) {
	if !slices.Contains(r.Assumed, what) {
		r.Assumed = append(slices.Clip(r.Assumed), what)
	}
}

func anyFor(rules []resourceRule, r *Candidate) bool {
	return slices.ContainsFunc(rules, func(x resourceRule) bool { return x.matches(r) })
}

// matches is an API server's judgement of one rule
// (k8s.io/apiserver/pkg/admission/plugin/webhook/predicates/rules).
func (x resourceRule) matches(r *Candidate) bool {
	return x.inScope(r.Object, r.Resource) && (r.Operation == "" || listed(x.operations, string(r.Operation))) &&
		listed(x.groups, r.Resource.Group) && (r.anyVersion || listed(x.versions, r.Resource.Version)) &&
		slices.ContainsFunc(x.resources, func(known resource) bool {
			return wild(known.name, r.Resource.Resource) && wild(known.subresource, r.Key.Subresource)
		}) && x.named(r.Object)
}

func (x resourceRule) inScope(u *unstructured.Unstructured, r schema.GroupVersionResource) bool {
	namespaced := u.GetNamespace() != "" && r.GroupResource() != schema.GroupResource{Resource: "namespaces"}
	switch x.scope {
	case "Namespaced":
		return namespaced
	case "Cluster":
		return !namespaced
	default:
		return true
	}
}

// named compares the name; the names of a rule are prefixes of an object's that
// has yet to get its own.
func (x resourceRule) named(u *unstructured.Unstructured) bool {
	if len(x.names) == 0 {
		return true
	}
	if name := u.GetName(); name != "" {
		return slices.Contains(x.names, name)
	}
	return slices.ContainsFunc(x.names, func(name string) bool { return strings.HasPrefix(u.GetGenerateName(), name) })
}

func listed(items []string, text string) bool {
	return slices.ContainsFunc(items, func(item string) bool { return wild(item, text) })
}

func wild(item, text string) bool { return item == "*" || item == text }
