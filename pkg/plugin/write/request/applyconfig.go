package request

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/merge"
	"sigs.k8s.io/structured-merge-diff/v6/typed"
	"sigs.k8s.io/structured-merge-diff/v6/value"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/diff"
)

// applyConfiguration returns the apply configuration, or the first reason against server-side apply.
func (r *Request) applyConfiguration(types managedfields.TypeConverter) (map[string]any, Reason) {
	if types == nil {
		return nil, Reason{Kind: NoSchema}
	}
	a := applier{Request: r, types: types}
	for _, step := range []func() Reason{
		a.typeObjects, a.compare, a.checkNulls, a.checkRemovals,
		a.readManagers, a.checkForeignElements, a.extract, a.simulate,
	} {
		if why := step(); !why.None() {
			return nil, why
		}
	}
	return a.addressed(), Reason{}
}

// applier builds an apply configuration in steps.
type applier struct {
	*Request
	types      managedfields.TypeConverter
	live, want *typed.TypedValue
	// own has the fields of the manager's own Apply entry: an apply configuration without one would remove
	// it.
	own      *fieldpath.Set
	managers fieldpath.ManagedFields
	// whole has the elements of an owned list that was atomic and is granular now.
	whole *fieldpath.Set
	body  *unstructured.Unstructured
	typed *typed.TypedValue // body, typed
}

func (a *applier) typeObjects() Reason {
	var err error
	if a.live, err = a.typeOf(a.was); err != nil {
		return Reason{Kind: InvalidLive}
	}
	if a.want, err = a.typeOf(a.Want.Object); err != nil {
		return Reason{Kind: InvalidWant}
	}
	return Reason{}
}

// typeOf accepts duplicate list elements, which stored objects may have.
func (a *applier) typeOf(object map[string]any) (*typed.TypedValue, error) {
	return a.types.ObjectToTyped(&unstructured.Unstructured{Object: object}, typed.AllowDuplicates)
}

func (a *applier) compare() Reason {
	c, err := a.live.Compare(a.want)
	if err != nil {
		return Reason{Kind: InvalidWant}
	}
	a.Changed, a.Removed = c.Added.Union(c.Modified), c.Removed
	return Reason{}
}

// checkNulls: a null in an apply configuration removes some leaves, empties
// others and is ignored elsewhere.
func (a *applier) checkNulls() Reason {
	if addsNull(a.was, a.Want.Object) {
		return Reason{Kind: Null}
	}
	return Reason{}
}

func addsNull(live, want any) bool {
	switch want := want.(type) {
	case nil:
		return live != nil
	case map[string]any:
		was, _ := live.(map[string]any)
		for k, v := range want {
			x, ok := was[k]
			if v == nil && !ok || addsNull(x, v) {
				return true
			}
		}
	case []any:
		was, _ := live.([]any)
		for i, v := range want {
			var x any
			if i < len(was) {
				x = was[i]
			}
			if i >= len(was) && v == nil || addsNull(x, v) {
				return true
			}
		}
	}
	return false
}

func (a *applier) checkRemovals() Reason {
	if !a.Removed.Empty() {
		return Reason{Kind: Removal, Detail: brief(a.Removed)}
	}
	if a.Changed.Empty() {
		return Reason{Kind: Order}
	}
	return Reason{}
}

// readManagers reads the ownership in the server's form. Paths of another API version do not resolve here, so
// their fields would be missing in the apply configuration.
func (a *applier) readManagers() Reason {
	a.own, a.managers = fieldpath.NewSet(), fieldpath.ManagedFields{}
	for i, e := range a.Live.GetManagedFields() {
		name, own := entryName(i, e), a.isOwnApply(e)
		if own && e.APIVersion != a.Live.GetAPIVersion() {
			return Reason{Kind: OtherVersion, Detail: e.APIVersion}
		}
		set, err := FieldsOf(e)
		if err != nil {
			return Reason{Kind: Simulation, Detail: "managedFields cannot be read"}
		}
		if own {
			name, a.own = a.manager, set
		}
		version := fieldpath.APIVersion(e.APIVersion)
		a.managers[name] = fieldpath.NewVersionedSet(set, version, e.Operation == "Apply")
	}
	return Reason{}
}

// entryName contains the index of an entry, since a manager may have several.
func entryName(i int, e metav1.ManagedFieldsEntry) string { return fmt.Sprintf("%d/%s", i, e.Manager) }

func (a *applier) isOwnApply(e metav1.ManagedFieldsEntry) bool {
	return e.Manager == a.manager && e.Operation == metav1.ManagedFieldsOperationApply &&
		e.Subresource == a.subresource
}

// checkForeignElements: an apply configuration names every list element that it
// leads through, and so becomes a co-owner of the element as a whole. The
// manager that applied it could then no longer remove it.
func (a *applier) checkForeignElements() Reason {
	for i, e := range a.Live.GetManagedFields() {
		if e.Operation == metav1.ManagedFieldsOperationApply && e.Manager != a.manager &&
			holdsElementOn(a.managers[entryName(i, e)].Set(), a.Changed.Leaves()) {
			return Reason{Kind: ForeignElement, Detail: e.Manager}
		}
	}
	return Reason{}
}

// holdsElementOn reports whether a set holds a keyed list element on one of the paths.
func holdsElementOn(set, paths *fieldpath.Set) bool {
	holds := false
	paths.Iterate(func(p fieldpath.Path) {
		for i := range p {
			holds = holds || p[i].Key != nil && set.Has(p[:i+1])
		}
	})
	return holds
}

// extract cuts the body out of the wanted object: the changed leaves and the leaves of the manager's entry,
// with the keys of their list elements.
func (a *applier) extract() Reason {
	if own, err := typed.ReconcileFieldSetWithSchema(a.own, a.live); err != nil {
		return Reason{Kind: InvalidLive}
	} else if own != nil {
		a.own = own
	}
	from, items, err := a.items()
	if err != nil {
		return Reason{Kind: InvalidWant}
	}
	cut, _ := from.ExtractItems(items, typed.WithAppendKeyFields()).AsValue().Unstructured().(map[string]any)
	body, err := roundTrip(cut)
	if err != nil || body == nil {
		return Reason{Kind: UnfitBody}
	}
	dropInvented(body, a.Want.Object)
	a.body = &unstructured.Unstructured{Object: body}
	a.body.SetAPIVersion(a.Live.GetAPIVersion())
	a.body.SetKind(a.Live.GetKind())
	// Strictly: the server takes no duplicates in a body.
	if a.typed, err = a.types.ObjectToTyped(a.body); err != nil {
		return Reason{Kind: UnfitBody, Detail: brief(a.Changed)}
	}
	return Reason{}
}

// items returns the set to extract and its source. An owned leaf that has become a map with entries of others
// is extracted as our empty map; an owned list that has become granular is ours as a whole.
func (a *applier) items() (*typed.TypedValue, *fieldpath.Set, error) {
	full, err := a.want.ToFieldSet()
	if err != nil {
		return nil, nil, err
	}
	leaves := full.Leaves()
	own := a.own.Leaves()
	var filled []fieldpath.Path
	a.whole = fieldpath.NewSet()
	granular := fieldpath.NewSet()
	for p := range own.All() {
		if leaves.Has(p) {
			continue
		}
		switch v, _ := diff.Lookup(a.Want.Object, p); v.(type) {
		case map[string]any:
			filled = append(filled, p.Copy())
		case []any:
			granular.Insert(p.Copy())
			a.whole = a.whole.Union(leavesBelow(leaves, p))
		}
	}
	from, err := a.typeOf(emptied(a.Want.Object, filled))
	if err != nil {
		return nil, nil, err
	}
	there, err := from.ToFieldSet()
	if err != nil {
		return nil, nil, err
	}
	own = own.Intersection(there).Difference(granular)
	return from, a.Changed.Leaves().Union(own).Union(a.whole), nil
}

func leavesBelow(leaves *fieldpath.Set, root fieldpath.Path) *fieldpath.Set {
	out := fieldpath.NewSet()
	for p := range leaves.All() {
		if len(p) > len(root) && p[:len(root)].Equals(root) {
			out.Insert(p.Copy())
		}
	}
	return out
}

// emptied returns the object with an empty map at each path.
func emptied(object map[string]any, paths []fieldpath.Path) map[string]any {
	if len(paths) == 0 {
		return object
	}
	object = runtime.DeepCopyJSON(object)
	for _, p := range paths {
		last := p[len(p)-1]
		parent, _ := diff.Lookup(object, p[:len(p)-1])
		if m, ok := parent.(map[string]any); ok && last.FieldName != nil {
			m[*last.FieldName] = map[string]any{}
		}
	}
	return object
}

// dropInvented removes the nulls that extraction puts in place of missing owned fields. The simulation finds
// those inside list elements.
func dropInvented(body, want map[string]any) {
	for k, v := range body {
		wanted, ok := want[k]
		if v == nil && (!ok || wanted != nil) {
			delete(body, k)
			continue
		}
		if inner, ok := v.(map[string]any); ok {
			below, _ := wanted.(map[string]any)
			dropInvented(inner, below)
		}
	}
}

// addressed returns the body with the identity and version of the object. The uid keeps the server from
// creating a deleted object again; a resourceVersion is not enough for that.
func (a *applier) addressed() map[string]any {
	body := maps.Clone(a.body.Object)
	metadata := map[string]any{
		"name":            a.Live.GetName(),
		"uid":             string(a.Live.GetUID()),
		"resourceVersion": a.Live.GetResourceVersion(),
	}
	if ns := a.Live.GetNamespace(); ns != "" {
		metadata["namespace"] = ns
	}
	if changed, ok := body["metadata"].(map[string]any); ok {
		for k, v := range changed {
			if _, ok := metadata[k]; !ok {
				metadata[k] = v
			}
		}
	}
	body["metadata"] = metadata
	return body
}

// simulate runs the server's own apply here, with the object's real
// managedFields: reconciling with the schema, merging and pruning. A merge
// alone would not show that a field which falls out of the body is pruned. The
// result has to be the wanted object, its order included, and the manager's
// entry may grow by nothing but changed fields, list keys and former lists.
func (a *applier) simulate() Reason {
	version := fieldpath.APIVersion(a.Live.GetAPIVersion())
	updater := (&merge.UpdaterBuilder{Converter: oneVersion(version)}).BuildUpdater()
	result, owners, err := updater.Apply(a.live, a.typed, version, a.managers, a.manager, true)
	if err != nil {
		return Reason{Kind: Simulation, Detail: "it cannot be merged"}
	}
	if result == nil { // the updater's way to say that nothing changes
		result = a.live
	}
	merged, _ := result.AsValue().Unstructured().(map[string]any)
	if differences := diff.Edits(a.Want.Object, merged); len(differences) > 0 {
		var names []string
		for _, e := range differences {
			names = append(names, e.Path.String())
		}
		return Reason{Kind: Simulation, Detail: few(names)}
	}
	return a.checkGain(owners[a.manager])
}

func (a *applier) checkGain(now fieldpath.VersionedSet) Reason {
	if now == nil {
		return Reason{}
	}
	taken := fieldpath.NewSet()
	for p := range now.Set().Leaves().Difference(a.own).Difference(a.Changed).Difference(a.whole).All() {
		if !IsListKey(p) && !isIdentity(p) {
			taken.Insert(p.Copy())
		}
	}
	if taken.Empty() {
		return Reason{}
	}
	return Reason{Kind: Overreach, Detail: brief(taken)}
}

// isIdentity reports whether the server leaves a path out of managedFields.
func isIdentity(p fieldpath.Path) bool {
	switch p.String() {
	case ".apiVersion", ".kind", ".metadata", ".metadata.name", ".metadata.namespace":
		return true
	}
	return false
}

// oneVersion is a merge.Converter that converts nothing: entries of other versions stay as they are.
type oneVersion fieldpath.APIVersion

var errOtherVersion = errors.New("another API version")

func (v oneVersion) Convert(object *typed.TypedValue, to fieldpath.APIVersion) (*typed.TypedValue, error) {
	if to != fieldpath.APIVersion(v) {
		return nil, errOtherVersion
	}
	return object, nil
}

func (v oneVersion) IsMissingVersionError(err error) bool { return errors.Is(err, errOtherVersion) }

// IsListKey reports whether a path ends in a key field of its list element.
func IsListKey(p fieldpath.Path) bool {
	n := len(p)
	return n > 1 && p[n-2].Key != nil && p[n-1].FieldName != nil &&
		slices.ContainsFunc(*p[n-2].Key, func(k value.Field) bool { return k.Name == *p[n-1].FieldName })
}

// brief names the first fields of a set, for messages.
func brief(s *fieldpath.Set) string {
	var names []string
	for p := range s.Leaves().All() {
		names = append(names, p.String())
	}
	return few(names)
}

// few returns the first names, and whether there are more.
func few(names []string) string {
	const most = 2
	if len(names) > most {
		names = append(names[:most:most], "...")
	}
	return strings.Join(names, ", ")
}
