package e2e

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
)

// others write the objects of a run while the plugin is dead.
type others struct {
	run  *proofRun
	did  map[string][]tweak // by name
	kept map[string]bool    // objects that are as they were, but for what others did
	// conflicting are objects whose fields others have changed as well in this
	// stage, which has to be reported.
	conflicting map[string]bool
	versions    []string // that they wrote
}

func newOthers(r *proofRun) *others {
	return &others{run: r, did: map[string][]tweak{}, kept: map[string]bool{}, conflicting: map[string]bool{}}
}

// theirs is the change of a field that the policies change as well, by the sort of
// object.
var theirs = map[string]tweak{
	"settings": {Do: doSet, At: fieldpath.MakePathOrDie("data", "mode"), Value: "theirs"},
	"odd":      {Do: doSet, At: fieldpath.MakePathOrDie("data", "mode"), Value: "theirs"},
	"web":      {Do: doSet, At: container("app", "imagePullPolicy"), Value: "Never"},
	"api":      {Do: doSet, At: container("app", "imagePullPolicy"), Value: "Never"},
	"token":    {Do: doSet, At: fieldpath.MakePathOrDie("data", "key"), Value: "dGhlaXJz"},
	"gear":     {Do: doSet, At: fieldpath.MakePathOrDie("spec", "teeth", fieldpath.KeyByFields("id", "a"), "size"), Value: int64(7)},
}

func container(name, field string) fieldpath.Path {
	return fieldpath.MakePathOrDie("spec", "template", "spec", "containers", fieldpath.KeyByFields("name", name), field)
}

// conflicts is how many objects others are faster with in each stage, if there are
// as many left.
const conflicts = 2

// meddle has others write in the middle of an apply: the very fields of objects
// that are not written yet, the status of some, and another field of some.
func (o *others) meddle(t *testing.T) {
	t.Helper()
	left := conflicts
	o.each(func(i int, object *unstructured.Unstructured) {
		name := object.GetName()
		if left > 0 && o.run.stored(name, manager, 0) == 0 {
			left--
			o.conflicting[name], o.kept[name] = true, true
			o.writeTheirs(t, object)
			return
		}
		o.writeBeside(t, object, i, "other")
	})
}

// meddleAgain has others write before an undo: the fields of objects that were
// written, and what is beside them.
func (o *others) meddleAgain(t *testing.T) {
	t.Helper()
	o.conflicting = map[string]bool{}
	left := conflicts
	o.each(func(i int, object *unstructured.Unstructured) {
		name := object.GetName()
		if left > 0 && !o.kept[name] {
			left--
			o.conflicting[name] = true
			o.writeTheirs(t, object)
			return
		}
		o.writeBeside(t, object, i, "later")
	})
}

// each goes through the objects in random order.
func (o *others) each(do func(int, *unstructured.Unstructured)) {
	objects := slices.Clone(o.run.objects)
	o.run.random.Shuffle(len(objects), func(i, j int) { objects[i], objects[j] = objects[j], objects[i] })
	for i, object := range objects {
		do(i, object)
	}
}

func (o *others) writeTheirs(t *testing.T, object *unstructured.Unstructured) {
	t.Helper()
	sort, _, _ := strings.Cut(object.GetName(), "-")
	o.write(t, object, "", theirs[sort])
	o.run.count("others' changes of the same field", 1)
}

// writeBeside leaves every second object alone.
func (o *others) writeBeside(t *testing.T, object *unstructured.Unstructured, i int, annotation string) {
	t.Helper()
	switch {
	case i%2 == 0:
	case object.GetKind() == "Deployment":
		o.write(t, object, "status", tweak{Do: doSet, At: fieldpath.MakePathOrDie("status"), Value: map[string]any{"replicas": int64(i)}})
		o.run.count("others' changes of the status", 1)
	default:
		o.write(t, object, "", tweak{Do: doSet, At: fieldpath.MakePathOrDie("metadata", "annotations", annotation), Value: "1"})
		o.run.count("others' changes of another field", 1)
	}
}

func (o *others) write(t *testing.T, object *unstructured.Unstructured, subresource string, change tweak) {
	t.Helper()
	u := o.run.get(t, object)
	key := engine.KeyOf(u)
	key.Subresource = subresource
	changed := &unstructured.Unstructured{Object: edited(u.Object, []tweak{change})}
	answer, err := o.run.resource(key).Update(o.run.ctx, changed, metav1.UpdateOptions{FieldManager: "kubectl-edit"}, subresources(key)...)
	check(t, err)
	o.versions = append(o.versions, answer.GetResourceVersion())
	o.did[u.GetName()] = append(o.did[u.GetName()], change)
}

// over is what the objects should be: as the plugin is to make them, or as they
// were before where others were faster, and what others did.
func (o *others) over(made, before contents) contents {
	out := maps.Clone(made)
	for name, tweaks := range o.did {
		object := made[name]
		if o.kept[name] {
			object = before[name]
		}
		out[name] = edited(object, tweaks)
	}
	return out
}

// checkReported demands that the plugin says for each object that others were faster,
// by a pattern with the object's name, and that it does not call that a success.
func (o *others) checkReported(t *testing.T, code int, pattern string) {
	t.Helper()
	for name := range o.conflicting {
		if !regexp.MustCompile(fmt.Sprintf(pattern, name)).MatchString(o.run.output.String()) {
			t.Errorf("seed %d: the output does not say that others have changed %s", o.run.seed, name)
		}
	}
	if len(o.conflicting) > 0 && code == 0 {
		t.Errorf("seed %d: exit code 0, although others have changed %d objects", o.run.seed, len(o.conflicting))
	}
}
