package touched

import (
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
)

// Object names an object in files.
type Object struct {
	APIVersion  string    `json:"apiVersion"`
	Kind        string    `json:"kind"`
	Namespace   string    `json:"namespace,omitempty"`
	Name        string    `json:"name"`
	Subresource string    `json:"subresource,omitempty"`
	UID         types.UID `json:"uid,omitempty"`
}

// ObjectOf names the object with a key.
func ObjectOf(k engine.ObjectKey) Object {
	return Object{
		APIVersion: k.GroupVersionKind().GroupVersion().String(), Kind: k.Kind,
		Namespace: k.Namespace, Name: k.Name, Subresource: k.Subresource, UID: k.UID,
	}
}

// Key is the engine's name for the object.
func (o Object) Key() engine.ObjectKey {
	gvk := schema.FromAPIVersionAndKind(o.APIVersion, o.Kind)
	return engine.ObjectKey{
		GroupKind: gvk.GroupKind(), Version: gvk.Version,
		Namespace: o.Namespace, Name: o.Name, Subresource: o.Subresource, UID: o.UID,
	}
}

// Rule is an engine.RuleRef in files.
type Rule struct {
	Dialect string `json:"dialect,omitempty"`
	Policy  string `json:"policy,omitempty"`
	Rule    string `json:"rule,omitempty"`
	Via     string `json:"via,omitempty"`
	Origin  string `json:"origin,omitempty"`
}
