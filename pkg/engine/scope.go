package engine

import (
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
)

// Scope is the user's choice of objects. A Source reads what both the policies and the
// scope select.
type Scope struct {
	// Namespace is the one namespace to look in; empty stands for all.
	Namespace string
	// ClusterScoped includes objects that have no namespace.
	ClusterScoped bool
	// Only holds the types and names that the user typed: group, kind and
	// perhaps name; empty stands for every kind that the policies match. Typing a
	// kind also includes what a mere wildcard leaves out: Events, Leases,
	// EndpointSlices and objects owned by a controller.
	Only []ObjectKey
	// Labels and Fields select on the server; nil selects everything.
	Labels labels.Selector
	Fields fields.Selector
	// Request is the admission request to simulate for each object.
	Request Request
}
