package snapshot

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"regexp"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
)

// Raw answers a GET like an API server with these objects: for an object or its status, a collection, or the
// kinds in /api and /apis. For a missing object or path apierrors.IsNotFound holds for the error; any other
// request is an *engine.UnansweredError.
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
	case p.Resource == "" && discovery.MatchString(p.Clean):
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

// mappingOf finds the resource of a path, in its version.
func (s *Snapshot) mappingOf(p engine.APIPath) (*meta.RESTMapping, error) {
	resource := schema.GroupVersionResource{Group: p.Group, Version: p.Version, Resource: p.Resource}
	mapping, err := engine.MappingOf(s.mapper, resource)
	if err != nil {
		return nil, noSuchPath(p)
	}
	return mapping, nil
}

// noSuchPath is a server's error for an unknown resource.
func noSuchPath(p engine.APIPath) error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: 404, Reason: metav1.StatusReasonNotFound,
		Message: fmt.Sprintf("the server could not find the requested resource (%s)", p.Clean),
	}}
}

// object returns nil for a subresource that manifests do not hold.
func (s *Snapshot) object(mapping *meta.RESTMapping, p engine.APIPath) ([]byte, error) {
	key := engine.ObjectKey{
		GroupKind: mapping.GroupVersionKind.GroupKind(), Namespace: p.Namespace, Name: p.Name,
	}
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

// collection returns a list like a server: elements of Kubernetes' own kinds do not repeat their type. It
// comes as a whole, whatever its limit.
func collection(
	ctx context.Context, objects engine.Reader, mapping *meta.RESTMapping, p engine.APIPath,
) ([]byte, error) {
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

// selectionOf reads the parameters of a request for a collection. Its label selector may use more than a
// policy's can.
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

// discovery matches the paths of discovery requests.
var discovery = regexp.MustCompile(`^/apis?(/|$)`)

// scalePaths are the paths in an object of the fields of its Scale.
type scalePaths struct {
	SpecReplicas   string `json:"specReplicasPath"` // such as ".spec.replicas"
	StatusReplicas string `json:"statusReplicasPath"`
	LabelSelector  string `json:"labelSelectorPath"`
}

// subresource returns an object as a server serves it through a subresource: the object itself for its status
// and for the parts of a Pod with their own endpoint, or its Scale.
func (s *Snapshot) subresource(e *entry, name string) (*unstructured.Unstructured, bool) {
	switch {
	case name == "" || name == "status":
		return s.decoded(e), true
	case name == "scale":
		if paths := s.scale(e.mapping.GroupVersionKind); paths != nil {
			return scaleOf(s.decoded(e), paths), true
		}
	case e.key.GroupKind == schema.GroupKind{Kind: "Pod"}:
		return s.decoded(e), name == "resize" || name == "ephemeralcontainers"
	}
	return nil, false
}

// scale returns the paths of a kind; nil without a Scale.
func (s *Snapshot) scale(gvk schema.GroupVersionKind) *scalePaths {
	for i := range s.custom {
		if s.custom[i].kind == gvk {
			return s.custom[i].scale
		}
	}
	switch gvk.GroupKind().String() {
	case "ReplicationController", "Deployment.apps", "ReplicaSet.apps", "StatefulSet.apps":
		return &scalePaths{
			SpecReplicas: ".spec.replicas", StatusReplicas: ".status.replicas", LabelSelector: ".spec.selector",
		}
	}
	return nil
}

// scaleOf returns the Scale of an object, in autoscaling/v1.
func scaleOf(u *unstructured.Unstructured, paths *scalePaths) *unstructured.Unstructured {
	metadata := map[string]any{}
	for _, key := range []string{"name", "namespace", "uid", "resourceVersion", "creationTimestamp"} {
		if v, found, err := unstructured.NestedFieldNoCopy(u.Object, "metadata", key); err == nil && found {
			metadata[key] = v
		}
	}
	spec, status, least := map[string]any{},
		map[string]any{"replicas": replicas(u, paths.StatusReplicas, 0)}, int64(0)
	if scheme.Scheme.Recognizes(u.GroupVersionKind()) {
		least = 1 // the default replicas of a built-in kind
	}
	if n := replicas(u, paths.SpecReplicas, least); n != 0 {
		spec["replicas"] = n
	}
	if text := selectorText(valueAt(u, paths.LabelSelector)); text != "" {
		status["selector"] = text
	}
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": metadata, "spec": spec, "status": status,
	}}
}

func replicas(u *unstructured.Unstructured, path string, otherwise int64) int64 {
	switch n := valueAt(u, path).(type) {
	case int64:
		return n
	case float64: // as other JSON decoders return it
		return int64(n)
	}
	return otherwise
}

// valueAt returns the value at a path such as ".spec.replicas"; nil if there is none.
func valueAt(u *unstructured.Unstructured, path string) any {
	v, _, err := unstructured.NestedFieldNoCopy(u.Object, strings.Split(strings.TrimPrefix(path, "."), ".")...)
	if err != nil {
		return nil
	}
	return v
}

// selectorText returns a selector as in the status of a Scale: it is a string already in a custom resource,
// and a map of labels in a ReplicationController.
func selectorText(v any) string {
	fields, isMap := v.(map[string]any)
	if !isMap {
		text, _ := v.(string)
		return text
	}
	var selector metav1.LabelSelector
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(fields, &selector); err != nil ||
		len(selector.MatchLabels)+len(selector.MatchExpressions) == 0 {
		selector = metav1.LabelSelector{MatchLabels: map[string]string{}}
		for key, value := range fields {
			if text, isText := value.(string); isText {
				selector.MatchLabels[key] = text
			}
		}
	}
	return metav1.FormatLabelSelector(&selector)
}
