package request

import (
	"errors"
	"fmt"

	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/merge"
	"sigs.k8s.io/structured-merge-diff/v6/typed"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/diff"
)

// simulate runs the server's own apply here, with the object's real
// managedFields: reconciling with the schema, merging and pruning. A merge
// alone would not show that a field which falls out of the body is pruned. The
// result has to be the wanted object, its order included, and the manager's
// entry may grow by nothing but changed fields, list keys and former lists.
func (a *applier) simulate() Reason {
	version := fieldpath.APIVersion(a.Live.GetAPIVersion())
	managers, err := a.managers()
	if err != nil {
		return Reason{Kind: Simulation, Detail: "managedFields cannot be read"}
	}
	updater := (&merge.UpdaterBuilder{Converter: oneVersion(version)}).BuildUpdater()
	result, owners, err := updater.Apply(a.live, a.typed, version, managers, a.manager, true)
	if err != nil {
		return Reason{Kind: Simulation, Detail: "it cannot be merged"}
	}
	if result == nil { // the updater's way to say that nothing changes
		result = a.live
	}
	merged, _ := result.AsValue().Unstructured().(map[string]any)
	if differences := diff.Edits(a.Want.Object, merged); len(differences) > 0 {
		return Reason{Kind: Simulation, Detail: briefEdits(differences)}
	}
	return a.checkGain(owners[a.manager])
}

// managers returns the ownership as the server has it. The names of other entries
// than our own contain their index, since a manager may have several.
func (a *applier) managers() (fieldpath.ManagedFields, error) {
	managers := fieldpath.ManagedFields{}
	for i, e := range a.Live.GetManagedFields() {
		name := fmt.Sprintf("%d/%s", i, e.Manager)
		if a.isOwnApply(e) {
			name = a.manager
		}
		set, err := fieldsOf(e)
		if err != nil {
			return nil, err
		}
		managers[name] = fieldpath.NewVersionedSet(set, fieldpath.APIVersion(e.APIVersion), e.Operation == "Apply")
	}
	return managers, nil
}

func (a *applier) checkGain(now fieldpath.VersionedSet) Reason {
	if now == nil {
		return Reason{}
	}
	taken := fieldpath.NewSet()
	for p := range now.Set().Leaves().Difference(a.own).Difference(a.Changed).Difference(a.whole).All() {
		if !isListKey(p) && !isIdentity(p) {
			taken.Insert(p.Copy())
		}
	}
	if taken.Empty() {
		return Reason{}
	}
	return Reason{Kind: Overreach, Detail: brief(taken)}
}

// isIdentity reports whether a path is one of those that the server leaves out of
// managedFields.
func isIdentity(p fieldpath.Path) bool {
	switch p.String() {
	case ".apiVersion", ".kind", ".metadata", ".metadata.name", ".metadata.namespace":
		return true
	}
	return false
}

func briefEdits(all []diff.Edit) string {
	var names []string
	for _, e := range all {
		names = append(names, e.Path.String())
	}
	return few(names)
}

// oneVersion is a merge.Converter between no versions at all: entries of other
// versions are left as they are, since nothing here can convert.
type oneVersion fieldpath.APIVersion

var errOtherVersion = errors.New("another API version")

func (v oneVersion) Convert(object *typed.TypedValue, to fieldpath.APIVersion) (*typed.TypedValue, error) {
	if to != fieldpath.APIVersion(v) {
		return nil, errOtherVersion
	}
	return object, nil
}

func (v oneVersion) IsMissingVersionError(err error) bool { return errors.Is(err, errOtherVersion) }
