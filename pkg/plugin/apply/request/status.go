package request

import (
	"maps"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/diff"
)

// StatusSubresource is the endpoint to which the fields below .status are written,
// for kinds that have it.
const StatusSubresource = "status"

// EndpointOf returns the subresource to which a field of such a kind is written:
// StatusSubresource, or "" for the object itself.
func EndpointOf(field fieldpath.Path) string {
	if name := field[0].FieldName; name != nil && *name == "status" {
		return StatusSubresource
	}
	return ""
}

// SplitStatus divides a change of an object whose kind has a /status endpoint: a
// server ignores each part at the endpoint of the other. Object is what is wanted of
// the object itself, with its live status; status is the live object with the status
// that is wanted, and nil if the change does not touch it.
func SplitStatus(live, after *unstructured.Unstructured) (object, status *unstructured.Unstructured) {
	if diff.Same(live.Object["status"], after.Object["status"]) {
		return after, nil
	}
	return withStatusOf(after, live), withStatusOf(live, after)
}

func withStatusOf(object, from *unstructured.Unstructured) *unstructured.Unstructured {
	fields := maps.Clone(object.Object)
	delete(fields, "status")
	if status, ok := from.Object["status"]; ok {
		fields["status"] = status
	}
	return &unstructured.Unstructured{Object: fields}
}
