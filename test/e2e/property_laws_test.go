package e2e

import (
	"fmt"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/apply"
)

// checkRefused demands that what a PUT is refused is a failure, and not written.
func checkRefused(live, final *unstructured.Unstructured, refusal error, r apply.Result) *violation {
	if r.Err == nil || r.Outcome != apply.Failed {
		return &violation{"what the server refuses is not reported", fmt.Sprintf("%s %s by %s, but a PUT: %v", r.Outcome, r.Reason, r.Method, refusal)}
	}
	if live.GetResourceVersion() != final.GetResourceVersion() {
		return &violation{"what the server refuses is written", r.Err.Error()}
	}
	return nil
}

// checkAnswer demands the object that a PUT would give.
func checkAnswer(ideal, final *unstructured.Unstructured, r apply.Result) *violation {
	if r.Err != nil {
		return &violation{"what the server takes is not written", fmt.Sprintf("%s by %s: %v", r.Outcome, r.Method, r.Err)}
	}
	if d := cmp.Diff(content(ideal), content(final)); d != "" {
		return &violation{"the server ends at another object", fmt.Sprintf("%s by %s %s (-put +got):\n%s", r.Outcome, r.Method, r.Reason, d)}
	}
	return nil
}

// content is an object without what the server keeps books in.
func content(u *unstructured.Unstructured) map[string]any { return withoutOwners(u) }

// checkOwners demands that no manager loses the ownership of more fields than by the
// PUT, but for fields that are asked for in another form: "1000m" for "1".
func checkOwners(live, ideal, final *unstructured.Unstructured, r apply.Result) *violation {
	for _, e := range live.GetManagedFields() {
		if e.Manager == manager {
			continue
		}
		more := fieldsOfSame(ideal, e).Difference(fieldsOfSame(final, e)).Intersection(fieldsOf(e)).Leaves()
		for _, path := range pathsOf(more) {
			if !r.Changed.Has(path) {
				return &violation{"others lose fields that are not changed", fmt.Sprintf("by %s %s, %s (%s) loses %s", r.Method, r.Reason, e.Manager, e.Operation, path)}
			}
		}
	}
	return nil
}

// pathsOf lists a set, whose own iterator may not be left early.
func pathsOf(set *fieldpath.Set) []fieldpath.Path {
	var out []fieldpath.Path
	set.Iterate(func(p fieldpath.Path) { out = append(out, p.Copy()) })
	return out
}

// fieldsOf is what an entry of managedFields names.
func fieldsOf(e metav1.ManagedFieldsEntry) *fieldpath.Set {
	set := fieldpath.NewSet()
	if e.FieldsV1 != nil {
		if err := set.FromJSON(e.FieldsV1.GetRawReader()); err != nil {
			panic(err) // the server's own
		}
	}
	return set
}

// fieldsOfSame is what the same manager owns in another state of the object.
func fieldsOfSame(u *unstructured.Unstructured, e metav1.ManagedFieldsEntry) *fieldpath.Set {
	for _, now := range u.GetManagedFields() {
		if now.Manager == e.Manager && now.Operation == e.Operation && now.Subresource == e.Subresource && now.APIVersion == e.APIVersion {
			return fieldsOf(now)
		}
	}
	return fieldpath.NewSet()
}
