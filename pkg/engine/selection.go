package engine

import (
	"context"
	"fmt"
	"iter"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/apimachinery/pkg/util/strategicpatch"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/wildcard"
)

// Selection names objects worth reading. Group, Version, Kind, Subresource,
// Namespace and Name are wildcard patterns (`*` any run of characters, `?` any
// one). An empty Group is the core group and an empty Subresource is the object
// itself; an empty Version, Namespace or Name leaves that part open.
type Selection struct {
	Group, Version, Kind, Subresource string
	// Resource narrows the kinds to those whose resource has this name, such as
	// "deployments"; a wildcard pattern, and empty for any. Rules of admission name
	// resources, and only a server, or a mapper, knows of which kinds they are.
	Resource        string
	Namespace, Name string
	Labels          *metav1.LabelSelector
	// ReadAs is the version to read the objects in where a server has the choice,
	// and no other selection asks otherwise; empty for the server's own choice.
	ReadAs string
}

// Exact tells whether the selection can only name a single object.
func (s Selection) Exact() bool {
	return s.Name != "" && !wildcard.Has(s.Namespace) && !wildcard.Has(s.Name) && s.exactKind() && s.Labels == nil
}

func (s Selection) exactKind() bool {
	return s.Resource == "" && !wildcard.Has(s.Group) && !wildcard.Has(s.Version) && !wildcard.Has(s.Kind)
}

// Names tells whether the selection names a kind, as far as its resource is
// concerned.
func (s Selection) Names(resource string) bool { return open(s.Resource, resource) }

// Matches tells whether the selection names the object. The resource and the
// subresource are not looked at: an object does not know through which endpoint
// it was read.
func (s Selection) Matches(u *unstructured.Unstructured) bool {
	gvk := u.GroupVersionKind()
	if !wildcard.Match(s.Kind, gvk.Kind) || !wildcard.Match(s.Group, gvk.Group) {
		return false
	}
	if !open(s.Version, gvk.Version) || !open(s.Namespace, u.GetNamespace()) || !open(s.Name, u.GetName()) {
		return false
	}
	if s.Labels == nil {
		return true
	}
	selector, err := metav1.LabelSelectorAsSelector(s.Labels)
	return err == nil && selector.Matches(labels.Set(u.GetLabels()))
}

func open(pattern, text string) bool { return pattern == "" || wildcard.Match(pattern, text) }

// Reader serves objects that policies, and the evaluation itself, ask for.
// Objects that it hands out are shared: nobody may modify them.
type Reader interface {
	// Get returns one object, or an error for which apierrors.IsNotFound holds.
	Get(context.Context, ObjectKey) (*unstructured.Unstructured, error)
	// List streams what a selection names, page by page, in a stable order. A
	// wildcard kind stands for every kind that can be listed.
	List(context.Context, Selection) iter.Seq2[*unstructured.Unstructured, error]
	// Schema tells how the server merges and compares objects of a kind. Its
	// zero value stands for a kind that no schema is known of.
	Schema(context.Context, schema.GroupVersionKind) (Schema, error)
}

// Schema answers the two questions that dialects and the write path ask of a
// kind's OpenAPI schema. Both are nil where the kind has no schema.
type Schema struct {
	// Types converts to structured-merge-diff's typed values: list-map keys,
	// sets and atomics, as server-side apply and CEL's ApplyConfiguration merge.
	Types managedfields.TypeConverter
	// Patch looks up patch strategies and merge keys, as strategic merge does.
	Patch strategicpatch.LookupPatchMeta
}

// Known tells whether there is a schema at all.
func (s Schema) Known() bool { return s.Types != nil }

// Page is one part of a listing. Target decodes the i-th object when it is
// called, so that a page can be decoded by several workers side by side.
type Page interface {
	Len() int
	Target(i int) (Target, error)
}

// UnreadableError is what a Source yields for a part of a listing that could not
// be read, such as a resource that the user may not list: the run goes on with
// the rest and counts as incomplete. Any other error of a Source ends the run.
type UnreadableError struct {
	What string // "pods in namespace shop"
	Err  error
}

// Error says what could not be read and why.
func (e *UnreadableError) Error() string { return fmt.Sprintf("cannot read %s: %v", e.What, e.Err) }

// Unwrap gives the server's answer.
func (e *UnreadableError) Unwrap() error { return e.Err }

// Source streams the objects to evaluate: those that both the selections of the
// programs and the user's own choice (namespace, selector, types, names) allow.
// Each object comes once, whatever the number of selections that name it, in an
// order that does not change from run to run.
type Source interface {
	Pages(context.Context, []Selection) iter.Seq2[Page, error]
}
