package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/limit"
)

// ReadNamespace returns the Namespace of the object: the one that came with the
// target, or else the one that w has. It is nil for an object in no namespace.
//
// A Namespace that w does not have, because manifests leave it out, is known by its
// name alone: what follows is evaluated as if it had no labels of its own, and w is
// notified that it lacks it. The error is a *NamespaceError.
func (t Target) ReadNamespace(ctx context.Context, w *World) (*unstructured.Unstructured, error) {
	name := t.Key.Namespace
	if t.Namespace != nil {
		w.note(ctx, ObjectKey{GroupKind: schema.GroupKind{Kind: "Namespace"}, Name: name})
	}
	switch {
	case t.Namespace != nil || name == "":
		return t.Namespace, nil
	case w.Reader == nil:
		return nil, &NamespaceError{Name: name, Err: errNoReader}
	}
	namespace, err := w.ReadNamespace(ctx, name)
	switch {
	case apierrors.IsNotFound(err):
		w.LackNamespace(name)
		return BareNamespace(name), nil
	case err != nil:
		return nil, &NamespaceError{Name: name, Err: err}
	}
	return namespace, nil
}

// NamespaceLabels returns the labels of the object's Namespace for a selector that asks for
// keys; nil for an object in no namespace. A selector that asks for nothing but the name needs no
// Namespace that can be read. The error is that of ReadNamespace.
func (t Target) NamespaceLabels(ctx context.Context, w *World, keys []string) (map[string]string, error) {
	if t.Namespace == nil && t.Key.Namespace != "" && OnlyName(keys) {
		return BareNamespace(t.Key.Namespace).GetLabels(), nil
	}
	namespace, err := t.ReadNamespace(ctx, w)
	if err != nil || namespace == nil {
		return nil, err
	}
	return LabelsOfNamespace(namespace), nil
}

// LabelsOfNamespace returns the labels that a Namespace has on an API server, which sets the one of
// its name; manifests seldom do.
func LabelsOfNamespace(namespace *unstructured.Unstructured) map[string]string {
	labels := namespace.GetLabels()
	if labels == nil {
		labels = map[string]string{}
	}
	labels[corev1.LabelMetadataName] = namespace.GetName()
	return labels
}

// OnlyName reports whether the keys of labels are no more than the one that every Namespace has
// for its name.
func OnlyName(keys []string) bool {
	return !slices.ContainsFunc(keys, func(key string) bool { return key != corev1.LabelMetadataName })
}

// BareNamespace is a Namespace with the one label that every Namespace has.
func BareNamespace(name string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{
		"name": name, "labels": map[string]any{corev1.LabelMetadataName: name},
	}}}
}

// LackNamespace reports that the evaluation depends on labels of a Namespace that is not there.
func (w *World) LackNamespace(name string) {
	if w.Lack != nil {
		w.Lack(&UnreadableError{What: "Namespace " + name, Err: errNoNamespace})
	}
}

var errNoNamespace = errors.New("it is not there, and rules that ask for its labels are evaluated as if it had none; --world adds it to manifests")

// ReadNamespace reads a Namespace. The error is that of the Reader, which must not be nil.
func (w *World) ReadNamespace(ctx context.Context, name string) (u *unstructured.Unstructured, err error) {
	limit.Wait(ctx, func() {
		u, err = w.Reader.Get(ctx, ObjectKey{GroupKind: schema.GroupKind{Kind: "Namespace"}, Version: "v1", Name: name})
	})
	return u, err
}

// NamespaceError is a Namespace that cannot be read, so that nothing is known of
// its labels.
type NamespaceError struct {
	Name string
	Err  error
}

var errNoReader = errors.New("there is nothing to read it from")

// Error names the Namespace and the reason.
func (e *NamespaceError) Error() string {
	return fmt.Sprintf("Namespace %s cannot be read: %v", e.Name, e.Err)
}

// Unwrap returns the reason.
func (e *NamespaceError) Unwrap() error { return e.Err }
