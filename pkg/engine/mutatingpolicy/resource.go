package mutatingpolicy

import (
	"context"
	"encoding/json"
	"errors"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/limit"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/selector"
)

// ownNamespace is the namespace argument of resource functions in namespaced policies: no namespace has this
// name. So policies of all namespaces share one environment.
const ownNamespace = "/"

func (s *Session) namespaceFor(namespace string) string {
	if namespace == ownNamespace && s.Namespace != "" {
		return s.Namespace
	}
	return namespace
}

// GetResource reads one object with the user's permissions; Kyverno uses its own ServiceAccount. A missing
// object is a NotFound error, which an expression sees as null.
func (s *Session) GetResource(
	apiVersion, name, namespace, object string,
) (*unstructured.Unstructured, error) {
	namespace = s.namespaceFor(namespace)
	mapping, subresource, err := s.mapping(apiVersion, name)
	if err != nil {
		return nil, err
	}
	namespaced := mapping.Scope.Name() == meta.RESTScopeNameNamespace
	if object == "" || (namespaced && namespace == "") {
		return nil, apierrors.NewNotFound(mapping.Resource.GroupResource(), object)
	}
	if !namespaced {
		namespace = ""
	}
	gvk := mapping.GroupVersionKind
	key := engine.ObjectKey{
		GroupKind: gvk.GroupKind(), Version: gvk.Version, Namespace: namespace, Name: object,
		Subresource: subresource,
	}
	u, err := s.world.Get(s.context, key)
	if apierrors.IsNotFound(err) && s.absent == "" {
		s.absent = key.String()
	}
	return u, err
}

// ListResources lists objects, with optional labels.
func (s *Session) ListResources(
	apiVersion, name, namespace string, labels map[string]string,
) (*unstructured.UnstructuredList, error) {
	namespace = s.namespaceFor(namespace)
	mapping, _, err := s.mapping(apiVersion, name)
	if err != nil {
		return nil, err
	}
	list := &unstructured.UnstructuredList{}
	gvk := mapping.GroupVersionKind
	list.SetGroupVersionKind(gvk.GroupVersion().WithKind(gvk.Kind + "List"))
	if selector.HasWildcard(namespace) { // a server takes it for the name of a missing one
		return list, nil
	}
	selection := engine.Selection{Group: gvk.Group, Version: gvk.Version, Kind: gvk.Kind, Namespace: namespace}
	if len(labels) > 0 {
		selection.Labels = &metav1.LabelSelector{MatchLabels: labels}
	}
	list.Items, err = listObjects(s.context, s.world, selection)
	return list, err
}

func listObjects(
	ctx context.Context, w *engine.World, s engine.Selection,
) (items []unstructured.Unstructured, err error) {
	items = []unstructured.Unstructured{}
	limit.Wait(ctx, func() {
		for u, failed := range w.Reader.List(ctx, s) {
			if err = failed; err != nil {
				return
			}
			if len(items) == limit.Elements {
				err = &limit.Error{What: "objects in one list", Max: limit.Elements}
				return
			}
			items = append(items, *u)
		}
	})
	return items, err
}

// PostResource creates an access review; other kinds are refused.
func (s *Session) PostResource(
	apiVersion, name, namespace string, data map[string]any,
) (*unstructured.Unstructured, error) {
	root := "/apis/"
	if !strings.Contains(apiVersion, "/") {
		root = "/api/"
	}
	target := root + apiVersion + "/"
	if namespace = s.namespaceFor(namespace); namespace != "" {
		target += "namespaces/" + namespace + "/"
	}
	path, err := engine.ParseAPIPath(target + name)
	if err != nil {
		return nil, s.lacks("resource.Post to %s is refused: %v", target+name, err)
	}
	if reason := path.Refusal("POST"); reason != "" {
		return nil, s.lacks("resource.Post to %s is refused: %s", path, reason)
	}
	body, err := json.Marshal(data)
	if err != nil {
		return nil, err
	}
	answer, err := s.raw(s.context, "POST", path.String(), body)
	if err != nil {
		return nil, err
	}
	content, ok := answer.(map[string]any)
	if !ok {
		return nil, errors.New("the answer is no object")
	}
	return &unstructured.Unstructured{Object: content}, nil
}

// ToGVR returns the resource of a kind.
func (s *Session) ToGVR(apiVersion, kind string) (*schema.GroupVersionResource, error) {
	gv, err := schema.ParseGroupVersion(apiVersion)
	if err != nil {
		return nil, err
	}
	if s.world.Mapper == nil {
		return nil, s.lacks("resource.ToGVR: there is no cluster that knows the resource of %s", kind)
	}
	mapping, err := s.world.Mapper.RESTMapping(gv.WithKind(kind).GroupKind(), gv.Version)
	if err != nil {
		return nil, err
	}
	return &mapping.Resource, nil
}

// mapping resolves "pods" or "pods/status" of an API version, once per run. An unknown resource is a NotFound
// error.
func (s *Session) mapping(
	apiVersion, name string,
) (mapping *meta.RESTMapping, subresource string, err error) {
	if s.world.Reader == nil || s.world.Mapper == nil {
		return nil, "", s.lacks("resource: there is no cluster and no --world to read %s from", name)
	}
	gv, err := schema.ParseGroupVersion(apiVersion)
	if err != nil {
		return nil, "", err
	}
	name, subresource, _ = strings.Cut(name, "/")
	gvr := gv.WithResource(name)
	type question schema.GroupVersionResource
	found, err := s.world.Memo.Do(s.context, question(gvr),
		func(context.Context) (any, error) { return engine.MappingOf(s.world.Mapper, gvr) })
	if meta.IsNoMatchError(err) {
		s.warn("resource: %s of %s is not known; it is taken to have no objects", name, apiVersion)
		return nil, "", apierrors.NewNotFound(gvr.GroupResource(), "")
	}
	mapping, _ = found.(*meta.RESTMapping)
	return mapping, subresource, err
}
