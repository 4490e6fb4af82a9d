package undo

import (
	"encoding/json"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/typed"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/diff"
)

// withoutKeys returns the apply configuration by which a manager gives up the list
// elements of which it owns only the key, and keeps the rest. They are left in its
// Apply entry when the fields that it applied in them are reverted, and as long as
// they are, the owner of the elements cannot remove them.
//
// It is nil if there is nothing to give up, or if the rest is not known. A dry run has
// to show whether the server leaves the object as it is: it removes an element that
// no one else owns.
func withoutKeys(live *unstructured.Unstructured, manager string, types managedfields.TypeConverter) ([]byte, error) {
	own, err := applied(live, manager)
	if own == nil || err != nil || types == nil {
		return nil, err
	}
	rest, elements := fieldpath.NewSet(), fieldpath.NewSet()
	own.Leaves().Iterate(func(p fieldpath.Path) {
		if element := keyOf(p); element != nil {
			elements.Insert(element.Copy())
		} else {
			rest.Insert(p.Copy())
		}
	})
	if !anyEmpty(elements, rest) || !plain(live, rest) {
		return nil, nil
	}
	object := map[string]any{}
	if !rest.Empty() {
		whole, err := types.ObjectToTyped(withoutManagedFields(live), typed.AllowDuplicates)
		if err != nil {
			return nil, nil // what the schema does not fit cannot be applied
		}
		object, _ = whole.ExtractItems(rest, typed.WithAppendKeyFields()).AsValue().Unstructured().(map[string]any)
	}
	return addressed(live, object)
}

// applied returns what the Apply entry of a manager owns; nil if it has none, or one in
// another version, whose paths may differ.
func applied(live *unstructured.Unstructured, manager string) (*fieldpath.Set, error) {
	for _, e := range live.GetManagedFields() {
		if e.Manager != manager || e.Operation != metav1.ManagedFieldsOperationApply || e.Subresource != "" ||
			e.APIVersion != live.GetAPIVersion() || e.FieldsV1 == nil {
			continue
		}
		own := fieldpath.NewSet()
		if err := own.FromJSON(e.FieldsV1.GetRawReader()); err != nil {
			return nil, fmt.Errorf("managedFields of %s cannot be read: %w", manager, err)
		}
		return own, nil
	}
	return nil, nil
}

// keyOf is the list element whose key a leaf belongs to; nil for any other leaf.
func keyOf(p fieldpath.Path) fieldpath.Path {
	n := len(p)
	if n > 0 && p[n-1].Key != nil {
		return p
	}
	if n < 2 || p[n-2].Key == nil || p[n-1].FieldName == nil {
		return nil
	}
	for _, k := range *p[n-2].Key {
		if k.Name == *p[n-1].FieldName {
			return p[:n-1]
		}
	}
	return nil
}

// anyEmpty reports whether there is an element in which nothing else is owned.
func anyEmpty(elements, rest *fieldpath.Set) bool {
	empty := false
	elements.Iterate(func(element fieldpath.Path) {
		filled := false
		rest.Iterate(func(p fieldpath.Path) {
			filled = filled || len(p) > len(element) && p[:len(element)].Equals(element)
		})
		empty = empty || !filled
	})
	return empty
}

// plain reports whether all leaves are still leaves: to extract one that others
// have put something below would take that over.
func plain(live *unstructured.Unstructured, leaves *fieldpath.Set) bool {
	all := true
	leaves.Iterate(func(p fieldpath.Path) {
		v, ok := diff.Lookup(live.Object, p)
		fields, isMap := v.(map[string]any)
		all = all && ok && (!isMap || len(fields) == 0)
	})
	return all
}

func withoutManagedFields(live *unstructured.Unstructured) *unstructured.Unstructured {
	out := live.DeepCopy()
	out.SetManagedFields(nil)
	return out
}

// addressed is a configuration for one object in one state.
func addressed(live *unstructured.Unstructured, object map[string]any) ([]byte, error) {
	u := &unstructured.Unstructured{Object: object}
	u.SetAPIVersion(live.GetAPIVersion())
	u.SetKind(live.GetKind())
	u.SetName(live.GetName())
	u.SetNamespace(live.GetNamespace())
	u.SetUID(live.GetUID())
	u.SetResourceVersion(live.GetResourceVersion())
	return json.Marshal(u.Object)
}
