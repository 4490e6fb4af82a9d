package snapshot

import (
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
)

// scalePaths are where an object has what its Scale shows.
type scalePaths struct {
	SpecReplicas   string `json:"specReplicasPath"` // such as ".spec.replicas"
	StatusReplicas string `json:"statusReplicasPath"`
	LabelSelector  string `json:"labelSelectorPath"`
}

// subresource returns an object as a server serves it through a subresource: the object itself
// for its status, and for the parts of a Pod that have an endpoint of their own; its Scale.
func (s *Snapshot) subresource(e *entry, name string) (*unstructured.Unstructured, bool) {
	switch {
	case name == "" || name == "status":
		return e.object(&s.texts), true
	case name == "scale":
		if paths := s.scale(e.mapping.GroupVersionKind); paths != nil {
			return scaleOf(e.object(&s.texts), paths), true
		}
	case e.key.GroupKind == schema.GroupKind{Kind: "Pod"}:
		return e.object(&s.texts), name == "resize" || name == "ephemeralcontainers"
	}
	return nil, false
}

// scale returns the paths of a kind; nil where it has no Scale.
func (s *Snapshot) scale(gvk schema.GroupVersionKind) *scalePaths {
	for i := range s.custom {
		if s.custom[i].kind == gvk {
			return s.custom[i].scale
		}
	}
	switch gvk.GroupKind().String() {
	case "ReplicationController", "Deployment.apps", "ReplicaSet.apps", "StatefulSet.apps":
		return &scalePaths{SpecReplicas: ".spec.replicas", StatusReplicas: ".status.replicas", LabelSelector: ".spec.selector"}
	}
	return nil
}

// scaleOf returns the Scale of an object, as autoscaling/v1 has it.
func scaleOf(u *unstructured.Unstructured, paths *scalePaths) *unstructured.Unstructured {
	metadata := map[string]any{}
	for _, key := range []string{"name", "namespace", "uid", "resourceVersion", "creationTimestamp"} {
		if v, found, err := unstructured.NestedFieldNoCopy(u.Object, "metadata", key); err == nil && found {
			metadata[key] = v
		}
	}
	spec, status, least := map[string]any{}, map[string]any{"replicas": replicas(u, paths.StatusReplicas, 0)}, int64(0)
	if scheme.Scheme.Recognizes(u.GroupVersionKind()) {
		least = 1 // the replicas of a built-in kind that says none
	}
	if n := replicas(u, paths.SpecReplicas, least); n != 0 {
		spec["replicas"] = n
	}
	if text := selectorText(at(u, paths.LabelSelector)); text != "" {
		status["selector"] = text
	}
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": metadata, "spec": spec, "status": status,
	}}
}

func replicas(u *unstructured.Unstructured, path string, otherwise int64) int64 {
	switch n := at(u, path).(type) {
	case int64:
		return n
	case float64: // as JSON is decoded elsewhere
		return int64(n)
	}
	return otherwise
}

// at returns what an object has at a path such as ".spec.replicas"; nil where there is nothing.
func at(u *unstructured.Unstructured, path string) any {
	v, _, err := unstructured.NestedFieldNoCopy(u.Object, strings.Split(strings.TrimPrefix(path, "."), ".")...)
	if err != nil {
		return nil
	}
	return v
}

// selectorText is a selector as the status of a Scale has it: of a custom resource it is a text
// already, of a ReplicationController a map of labels.
func selectorText(v any) string {
	fields, isMap := v.(map[string]any)
	if !isMap {
		text, _ := v.(string)
		return text
	}
	var selector metav1.LabelSelector
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(fields, &selector); err != nil || len(selector.MatchLabels)+len(selector.MatchExpressions) == 0 {
		selector = metav1.LabelSelector{MatchLabels: map[string]string{}}
		for key, value := range fields {
			if text, isText := value.(string); isText {
				selector.MatchLabels[key] = text
			}
		}
	}
	return metav1.FormatLabelSelector(&selector)
}
