package request

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// Takeover has the fields that an entry of managedFields would lose by a write.
type Takeover struct {
	Manager     string
	Operation   metav1.ManagedFieldsOperationType
	Subresource string
	Fields      *fieldpath.Set
	Verdict     Verdict
}

// String is "argocd (Apply): .spec.replicas", for messages.
func (t Takeover) String() string {
	var names []string
	for p := range t.Fields.Leaves().All() {
		names = append(names, p.String())
	}
	return fmt.Sprintf("%s: %s", t.Owner(), strings.Join(names, ", "))
}

// Shown returns the takeover with its fields formatted by a function.
func (t Takeover) Shown(path func(fieldpath.Path) fieldpath.Path) Takeover {
	fields := fieldpath.NewSet()
	for p := range t.Fields.Leaves().All() {
		fields.Insert(path(p))
	}
	t.Fields = fields
	return t
}

// Owner is "argocd (Apply)" or "hpa-controller (Update of scale)".
func (t Takeover) Owner() string {
	if t.Subresource != "" {
		return fmt.Sprintf("%s (%s of %s)", t.Manager, t.Operation, t.Subresource)
	}
	return fmt.Sprintf("%s (%s)", t.Manager, t.Operation)
}

// Verdict is the reaction to a takeover.
type Verdict string

// The verdicts. Most values were set once, by hand or on creation, and nobody will set them back: a conflict
// about them would be noise.
const (
	// Silent: no one will set the fields back.
	Silent Verdict = "silent"
	// Shown: continue, and show the managers.
	Shown Verdict = "shown"
	// Contested: the owner applies its whole intent repeatedly, or is a controller. It will set the fields
	// back or fail, so only the user can decide.
	Contested Verdict = "contested"
)

// beforeFirstApply is the manager to which the server attributes the fields of an object without
// managedFields before its first apply.
const beforeFirstApply = "before-first-apply"

// Owner is an entry of managedFields with unparsed fields: parsing them takes longer than most rules.
type Owner struct {
	Takeover
	FieldsV1 map[string]any
}

// Set parses the fields, without unreadable ones.
func (o *Owner) Set() *fieldpath.Set {
	set := fieldpath.NewSet()
	if text, err := json.Marshal(o.FieldsV1); err != nil || set.FromJSON(bytes.NewReader(text)) != nil {
		return fieldpath.NewSet()
	}
	return set
}

// Owners returns the managers that apply fields of an object, or would notice our write, each with the
// verdict on a takeover of all its fields. It leaves out unreadable entries.
func Owners(live *unstructured.Unstructured, us string) []Owner {
	var out []Owner
	entries, _, _ := unstructured.NestedFieldNoCopy(live.Object, "metadata", "managedFields")
	list, _ := entries.([]any)
	for _, item := range list {
		entry, _ := item.(map[string]any)
		text := func(name string) string { s, _ := entry[name].(string); return s }
		o := Owner{Takeover: Takeover{
			Manager: text("manager"), Operation: metav1.ManagedFieldsOperationType(text("operation")),
			Subresource: text("subresource"),
		}}
		o.Verdict = verdict(o.Manager, us, o.Operation, o.Subresource)
		o.FieldsV1, _ = entry["fieldsV1"].(map[string]any)
		if o.Operation == metav1.ManagedFieldsOperationApply || o.Verdict != Silent {
			out = append(out, o)
		}
	}
	return out
}

func verdict(manager, us string, op metav1.ManagedFieldsOperationType, subresource string) Verdict {
	switch {
	case manager == us, manager == beforeFirstApply:
		return Silent
	case op == metav1.ManagedFieldsOperationApply:
		return Contested
	case manager == "kubectl", strings.HasPrefix(manager, "kubectl-"):
		return Silent
	case subresource != "":
		return Contested
	}
	return Shown
}

// Takeovers returns the fields that managers lose according to the response to a dry run, in the order of the
// live object's managedFields. They are the server's conflicts of an apply, also for a JSON patch, which
// never conflicts.
//
// For an object without managedFields nothing is known.
func Takeovers(plan Request, answer *unstructured.Unstructured) ([]Takeover, error) {
	now := answer.GetManagedFields()
	return plan.takeovers(func(was metav1.ManagedFieldsEntry, fields *fieldpath.Set) (*fieldpath.Set, error) {
		for _, e := range now {
			if was.Manager != e.Manager || was.Operation != e.Operation || was.Subresource != e.Subresource ||
				was.APIVersion != e.APIVersion {
				continue
			}
			kept, err := FieldsOf(e)
			if err != nil {
				return nil, err
			}
			fields = fields.Difference(kept)
		}
		return fields, nil
	})
}

// takeovers returns the fields that the entries of the live object lose.
func (r *Request) takeovers(lost func(metav1.ManagedFieldsEntry, *fieldpath.Set) (*fieldpath.Set,
	error),
) ([]Takeover, error) {
	var out []Takeover
	for _, e := range r.Live.GetManagedFields() {
		if r.writesInto(e) {
			continue
		}
		fields, err := FieldsOf(e)
		if err == nil {
			fields, err = lost(e, fields)
		}
		if err != nil {
			return nil, fmt.Errorf("managedFields of %s cannot be read: %w", e.Manager, err)
		}
		if !fields.Empty() {
			out = append(out, Takeover{
				Manager: e.Manager, Operation: e.Operation, Subresource: e.Subresource,
				Fields: fields, Verdict: verdict(e.Manager, r.manager, e.Operation, e.Subresource),
			})
		}
	}
	return out, nil
}

// writesInto reports whether the request itself is recorded in an entry.
func (r *Request) writesInto(e metav1.ManagedFieldsEntry) bool {
	operation := metav1.ManagedFieldsOperationUpdate
	if r.Method == Apply {
		operation = metav1.ManagedFieldsOperationApply
	}
	return e.Manager == r.manager && e.Operation == operation && e.Subresource == r.subresource
}

// ForecastTakeovers predicts the takeovers from the fields of the request, without a dry run. It may miss
// takeovers by the server's defaulting and admission.
func ForecastTakeovers(plan Request) ([]Takeover, error) {
	touched := plan.Changed.Union(plan.Removed)
	return plan.takeovers(func(_ metav1.ManagedFieldsEntry, fields *fieldpath.Set) (*fieldpath.Set, error) {
		return fields.Intersection(touched), nil
	})
}

// FieldsOf returns the fields of an entry of managedFields.
func FieldsOf(e metav1.ManagedFieldsEntry) (*fieldpath.Set, error) {
	set := fieldpath.NewSet()
	if e.FieldsV1 == nil {
		return set, nil
	}
	return set, set.FromJSON(e.FieldsV1.GetRawReader())
}

// Below returns the part of a set below a path, with paths relative to it.
func Below(set *fieldpath.Set, p fieldpath.Path) *fieldpath.Set {
	for _, e := range p {
		set = set.WithPrefix(e)
	}
	return set
}
