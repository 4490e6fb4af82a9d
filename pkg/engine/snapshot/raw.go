package snapshot

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
)

// Raw answers a GET as an API server with these objects would: of an object or
// its status, of a collection, of the kinds in /api and /apis. What
// does not exist is an error for which apierrors.IsNotFound holds; any other request
// is an *engine.UnansweredError.
func (s *Snapshot) Raw(ctx context.Context, method, target string, _ []byte) ([]byte, error) {
	p, err := engine.ParseAPIPath(target)
	if err != nil {
		return nil, err
	}
	unanswered := func(reason string) error {
		return &engine.UnansweredError{Method: method, Path: target, Reason: reason}
	}
	switch {
	case method != "GET":
		return nil, unanswered("manifests can only be read")
	case p.Resource == "" && isDiscovery(p):
		return s.discover(p)
	case p.Resource == "":
		return nil, unanswered("manifests do not say this about the server")
	}
	mapping, err := s.mappingOf(p)
	if err != nil {
		return nil, err
	}
	if mapping.Scope.Name() == meta.RESTScopeNameRoot && p.Namespace != "" {
		return nil, noSuchPath(p)
	}
	if p.Name == "" {
		return collection(ctx, s, mapping, p)
	}
	object, err := s.object(mapping, p)
	if err == nil && object == nil {
		return nil, unanswered("manifests hold no " + p.Subresource)
	}
	return object, err
}

// mappingOf finds the resource that a path names, in the version of the path.
func (s *Snapshot) mappingOf(p engine.APIPath) (*meta.RESTMapping, error) {
	resource := schema.GroupVersionResource{Group: p.Group, Version: p.Version, Resource: p.Resource}
	mapping, err := engine.MappingOf(s.mapper, resource)
	if err != nil {
		return nil, noSuchPath(p)
	}
	return mapping, nil
}

// noSuchPath is the error of a server for a resource that it does not have.
func noSuchPath(p engine.APIPath) error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: 404, Reason: metav1.StatusReasonNotFound,
		Message: fmt.Sprintf("the server could not find the requested resource (%s)", p.Clean),
	}}
}

// object returns nil for a subresource that manifests do not hold.
func (s *Snapshot) object(mapping *meta.RESTMapping, p engine.APIPath) ([]byte, error) {
	key := engine.ObjectKey{GroupKind: mapping.GroupVersionKind.GroupKind(), Namespace: p.Namespace, Name: p.Name}
	e := s.find(key)
	if e == nil {
		return nil, apierrors.NewNotFound(mapping.Resource.GroupResource(), p.Name)
	}
	u, served := s.subresource(e, p.Subresource)
	if !served {
		return nil, nil
	}
	return json.Marshal(u.Object)
}

// collection is a list as a server answers it: the elements of a kind of
// Kubernetes itself do not repeat what they are. It comes as a whole, whatever its limit is.
func collection(ctx context.Context, objects engine.Reader, mapping *meta.RESTMapping, p engine.APIPath) ([]byte, error) {
	gvk := mapping.GroupVersionKind
	sel, wanted, err := selectionOf(p.Query)
	switch {
	case apierrors.IsBadRequest(err):
		return nil, err
	case err != nil:
		return nil, &engine.UnansweredError{Method: "GET", Path: p.String(), Reason: err.Error()}
	}
	sel.Group, sel.Kind, sel.Namespace, sel.ReadAs = gvk.Group, gvk.Kind, p.Namespace, gvk.Version
	items := []any{}
	for u, err := range objects.List(ctx, sel) {
		if err != nil {
			return nil, err
		}
		if !wanted.Matches(labels.Set(u.GetLabels())) {
			continue
		}
		item := u.Object
		if scheme.Scheme.Recognizes(gvk) {
			item = maps.Clone(item)
			delete(item, "apiVersion")
			delete(item, "kind")
		}
		items = append(items, item)
	}
	return json.Marshal(map[string]any{
		"apiVersion": gvk.GroupVersion().String(), "kind": gvk.Kind + "List",
		"metadata": map[string]any{"resourceVersion": ""}, "items": items,
	})
}

// selectionOf reads the parameters of a request for a collection. A label selector may be more than one of a policy is.
func selectionOf(query url.Values) (out engine.Selection, wanted labels.Selector, err error) {
	wanted = labels.Everything()
	for _, name := range slices.Sorted(maps.Keys(query)) {
		switch value := strings.Join(query[name], ","); name {
		case "labelSelector":
			if wanted, err = labels.Parse(value); err != nil {
				err = apierrors.NewBadRequest(err.Error())
			}
		case "fieldSelector":
			if selector, wrong := fields.ParseSelector(value); wrong != nil {
				err = apierrors.NewBadRequest(wrong.Error())
			} else {
				out.Fields, err = value, answerable(selector)
			}
		case "limit", "pretty", "resourceVersion", "resourceVersionMatch", "timeoutSeconds":
			// The whole list is a correct answer to all of these.
		case "continue":
			err = errors.New("a listing of files has no parts")
		default:
			err = fmt.Errorf("the parameter %s is not known here", name)
		}
		if err != nil {
			return out, nil, err
		}
	}
	return out, wanted, nil
}

// isDiscovery reports whether a path asks which kinds there are.
func isDiscovery(p engine.APIPath) bool {
	first, _, _ := strings.Cut(strings.TrimPrefix(p.Clean, "/"), "/")
	return slices.Contains([]string{"api", "apis"}, first)
}
