package engine

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// ReadNamespace returns the Namespace of the object: the one that came with the
// target, or else the one that w has. It is nil for an object in no namespace.
//
// A Namespace that w does not have, because manifests leave it out, is taken to
// exist without labels of its own, and assumed says so. The error is a
// *NamespaceError.
func (t Target) ReadNamespace(ctx context.Context, w *World) (namespace *unstructured.Unstructured, assumed Warning, err error) {
	name := t.Key.Namespace
	switch {
	case t.Namespace != nil || name == "":
		return t.Namespace, "", nil
	case w.Reader == nil:
		return nil, "", &NamespaceError{Name: name, Err: errNoReader}
	}
	namespace, err = w.ReadNamespace(ctx, name)
	switch {
	case apierrors.IsNotFound(err):
		return bareNamespace(name), Warning("Namespace " + name + " is not there to read; it is taken to have no labels of its own"), nil
	case err != nil:
		return nil, "", &NamespaceError{Name: name, Err: err}
	}
	return namespace, "", nil
}

// ReadNamespace reads a Namespace, once for all objects in it. The error is that of
// the Reader, which must not be nil.
func (w *World) ReadNamespace(ctx context.Context, name string) (*unstructured.Unstructured, error) {
	type question struct{ name string }
	namespace, err := w.Memo.Do(ctx, question{name}, func(ctx context.Context) (any, error) {
		return w.Reader.Get(ctx, ObjectKey{GroupKind: schema.GroupKind{Kind: "Namespace"}, Version: "v1", Name: name})
	})
	if err != nil {
		return nil, err
	}
	return namespace.(*unstructured.Unstructured), nil
}

// bareNamespace is a Namespace with the one label that every Namespace has.
func bareNamespace(name string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{
		"name": name, "labels": map[string]any{corev1.LabelMetadataName: name},
	}}}
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
