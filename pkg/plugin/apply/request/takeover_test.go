package request

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func entry(manager, operation, subresource, fields string) metav1.ManagedFieldsEntry {
	return metav1.ManagedFieldsEntry{
		Manager: manager, Operation: metav1.ManagedFieldsOperationType(operation), Subresource: subresource, APIVersion: "v1",
		FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(fields),
	}
}

func TestTakeovers(t *testing.T) {
	const held, kept = `{"f:data":{"f:a":{},"f:b":{}}}`, `{"f:data":{"f:b":{}}}`
	for _, c := range []struct {
		manager, operation, subresource string
		want                            string
	}{
		{testManager, "Update", "", "silent kubectl-mutate (Update): .data.a"},
		{testManager, "Apply", "scale", "silent kubectl-mutate (Apply of scale): .data.a"},
		{"before-first-apply", "Update", "", "silent before-first-apply (Update): .data.a"},
		{"kubectl-create", "Update", "", "silent kubectl-create (Update): .data.a"},
		{"kubectl-edit", "Update", "", "silent kubectl-edit (Update): .data.a"},
		{"kubectl", "Apply", "", "contested kubectl (Apply): .data.a"},
		{"argocd", "Apply", "", "contested argocd (Apply): .data.a"},
		{"kube-controller-manager", "Update", "scale", "contested kube-controller-manager (Update of scale): .data.a"},
		{"helm", "Update", "", "shown helm (Update): .data.a"},
	} {
		live := object(t, configMap)
		r := planned(t, live, edited(live, "2", "data", "a"))
		live.SetManagedFields([]metav1.ManagedFieldsEntry{
			entry(c.manager, c.operation, c.subresource, held), entry("bystander", "Apply", "", kept),
		})
		answer := live.DeepCopy()
		answer.SetManagedFields([]metav1.ManagedFieldsEntry{
			entry(c.manager, c.operation, c.subresource, kept), entry("bystander", "Apply", "", kept),
		})
		got := ""
		takeovers, err := Takeovers(r, answer)
		if err != nil {
			t.Fatal(err)
		}
		for _, o := range takeovers {
			got += fmt.Sprintf("%s %s", o.Verdict, o)
		}
		if d := cmp.Diff(c.want, got); d != "" {
			t.Errorf("%s (-want +got):\n%s", c.manager, d)
		}
	}
}

func TestTakeoversLeaveOutTheRequestItself(t *testing.T) {
	live := object(t, configMap)
	r := planned(t, live, edited(live, nil, "data", "a")) // a JSON patch: recorded as Update
	live.SetManagedFields([]metav1.ManagedFieldsEntry{entry(testManager, "Update", "", `{"f:data":{"f:a":{}}}`)})
	if got, err := Takeovers(r, edited(live, nil, "metadata", "managedFields")); err != nil || len(got) != 0 {
		t.Errorf("got %v, %v", got, err)
	}
}
