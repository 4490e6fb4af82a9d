package e2e

import (
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/apply"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/apply/request"
)

const tableHead = `What becomes of the changes of each case, in order.

- Request: what is sent, and why it is no server-side apply; "no-op" is a dry run that answers the live object.
- Takes from: who loses how many fields, U by Update, A by Apply.
- Answer: in which ways the dry run differs from what is wanted.
- Gains: what the manager's entry grows by: "exact" is nothing but the changed fields.
- Again: a sign for each change asked for at the end: 0 nothing to send, n a no-op, X a change is due.

| Case | Request | Takes from | Answer | Gains | Again |
|---|---|---|---|---|---|
`

// row is a line of the table.
type row struct {
	name                          string
	request, takes, answer, gains []string
	again                         string
}

func (r row) String() string {
	column := func(cells []string) string { return strings.Join(cells, " / ") }
	return fmt.Sprintf("| %s | %s | %s | %s | %s | %s |",
		r.name, column(r.request), column(r.takes), column(r.answer), column(r.gains), r.again)
}

func (r *row) add(result apply.Result) {
	takes := strings.Join(owners(result.Takeovers, leaves), ",")
	if takes == "" || result.Outcome != apply.Applied {
		takes = "-"
	}
	r.request = append(r.request, requestOf(result))
	r.takes = append(r.takes, takes)
	r.answer = append(r.answer, answerOf(result))
	r.gains = append(r.gains, gainsOf(result))
}

func requestOf(r apply.Result) string {
	text := string(r.Method)
	if !r.Reason.None() {
		text += " (" + string(r.Reason.Kind) + ")"
	}
	var status apierrors.APIStatus
	switch {
	case asStatus(r.Err, &status):
		text += fmt.Sprintf(", rejected %d", status.Status().Code)
	case r.Err != nil:
		text += ", " + string(r.Outcome)
	case r.Method != request.None && r.Outcome != apply.Applied:
		text += ", no-op"
	}
	return text
}

func answerOf(r apply.Result) string {
	var classes []string
	for _, f := range r.Difference {
		if !slices.Contains(classes, string(f.Class)) {
			classes = append(classes, string(f.Class))
		}
	}
	if r.Err != nil {
		return "-"
	}
	if len(classes) == 0 {
		return "="
	}
	slices.Sort(classes)
	return strings.Join(classes, ", ")
}

// gainsOf compares the manager's own entry before and after the write.
func gainsOf(r apply.Result) string {
	if r.Outcome != apply.Applied {
		return "-"
	}
	before, after := ownFields(r, r.Before), ownFields(r, r.After)
	keys, more := 0, 0
	after.Difference(before).Difference(r.Changed).Leaves().Iterate(func(p fieldpath.Path) {
		switch {
		case isKeyField(p):
			keys++
		case p[len(p)-1].Key == nil:
			more++
		}
	})
	var parts []string
	if keys > 0 {
		parts = append(parts, fmt.Sprintf("%d key(s)", keys))
	}
	if more > 0 {
		parts = append(parts, fmt.Sprintf("+%d more", more))
	}
	if !before.Difference(after).Leaves().Empty() {
		parts = append(parts, "fewer")
	}
	if len(parts) == 0 {
		return "exact"
	}
	return strings.Join(parts, ", ")
}

func ownFields(r apply.Result, object *unstructured.Unstructured) *fieldpath.Set {
	operation := metav1.ManagedFieldsOperationUpdate
	if r.Method == request.Apply {
		operation = metav1.ManagedFieldsOperationApply
	}
	set := fieldpath.NewSet()
	for _, e := range object.GetManagedFields() {
		if e.Manager != manager || e.Operation != operation || e.Subresource != r.Key.Subresource {
			continue
		}
		one := fieldpath.NewSet()
		if err := one.FromJSON(e.FieldsV1.GetRawReader()); err != nil {
			panic(err)
		}
		set = set.Union(one)
	}
	return set
}

func isKeyField(p fieldpath.Path) bool {
	n := len(p)
	if n < 2 || p[n-2].Key == nil || p[n-1].FieldName == nil {
		return false
	}
	for _, k := range *p[n-2].Key {
		if k.Name == *p[n-1].FieldName {
			return true
		}
	}
	return false
}
