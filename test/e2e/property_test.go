package e2e

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/kubectl-mutate/kubectl-mutate/internal/tier"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/cluster"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/write"
)

var (
	onlySeed      = flag.Uint64("seed", 0, "the one seed for which TestRandomChanges or TestProof is run")
	randomChanges = flag.Int("random-changes", tier.Pick(60, 600), "how many changes TestRandomChanges makes")
)

// TestRandomChanges makes random changes to random objects that others write as
// well, and holds the plugin's way of writing against a plain PUT of the wanted
// object, which says the same to the server without being fit for a shared
// object. For each change:
//
//   - the server ends at the object that the PUT would give;
//   - it refuses the one where it refuses the other, and nothing is written then;
//   - asked for again, nothing is sent;
//   - others lose the ownership of changed fields only.
//
// A failure prints a seed, which -seed replays, and the shortest trial found
// that fails in the same way.
func TestRandomChanges(t *testing.T) {
	p := newProperty(t)
	from, to := uint64(1), uint64(*randomChanges/changesPerTrial)
	if *onlySeed != 0 {
		from, to = *onlySeed, *onlySeed
	}
	for n := from; n <= to; n++ {
		first := newTrial(n, p.kinds)
		v := p.run(first)
		if v == nil {
			continue
		}
		shortest, v := p.shortest(first, v)
		t.Errorf("seed %d: %s\n%s\n%s", n, v.law, v.text, shortest)
	}
	t.Logf("%d changes: %s", p.counted["change"], counts(p.counted))
	if *onlySeed != 0 || *randomChanges < 600 {
		return
	}
	// Who changes the generator should not end up with changes that test nothing.
	for what, share := range map[string]int{"apply": 4, "json-patch": 4, "refused by the server": 50, "written": 2} {
		if p.counted[what]*share < p.counted["change"] {
			t.Errorf("only %d of %d changes: %s", p.counted[what], p.counted["change"], what)
		}
	}
}

// property is what the trials share.
type property struct {
	*writePath
	kinds   []*propertyKind
	counted map[string]int
	newName func() string
}

// violation says which law does not hold.
type violation struct{ law, text string }

// maxShortening bounds the search for a shorter trial.
const maxShortening = 300

// shortest leaves out of a failing trial whatever does not matter.
func (p *property) shortest(t trial, v *violation) (trial, *violation) {
	quiet := *p
	quiet.counted = map[string]int{}
	for tries := 0; ; {
		found := false
		for _, s := range t.shorter() {
			if tries++; tries > maxShortening {
				return t, v
			}
			if w := quiet.run(s); w != nil && w.law == v.law {
				t, v, found = s, w, true
				break
			}
		}
		if !found {
			return t, v
		}
	}
}

// run makes the changes of a trial to a new object.
func (p *property) run(t trial) *violation {
	key := t.kind.key
	key.Namespace, key.Name = p.namespace, p.newName()
	object := key
	object.Subresource = ""
	if err := p.createFor(t, object); err != nil {
		p.counted["no object"]++
		return nil // what a schema says is not all that a server demands
	}
	for _, s := range t.steps {
		if s.ours() {
			if v := p.change(key, s.edits); v != nil {
				return v
			}
		} else if err := p.other(key, s); err != nil && !isAnswer(err) {
			return &violation{"no answer", err.Error()}
		}
	}
	return nil
}

// isAnswer reports whether an error is the refusal of a server that was reached.
func isAnswer(err error) bool {
	var status apierrors.APIStatus
	return errors.As(err, &status)
}

func (p *property) createFor(t trial, key engine.ObjectKey) error {
	u := named(t.object, t.kind.object, key)
	if t.applied {
		return p.applyBody(key, t.creator, u)
	}
	_, err := p.resource(key).Create(p.ctx, u, metav1.CreateOptions{FieldManager: t.creator})
	return err
}

func (p *property) applyBody(key engine.ObjectKey, manager string, u *unstructured.Unstructured) error {
	force := true
	_, err := p.resource(key).Patch(p.ctx, key.Name, types.ApplyPatchType, []byte(jsonOf(u.Object)),
		metav1.PatchOptions{FieldManager: manager, Force: &force})
	return err
}

// named is an object, or what a manager applies of it, under its name.
func named(object, identity map[string]any, key engine.ObjectKey) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: throughJSON(object).(map[string]any)}
	u.SetAPIVersion(identity["apiVersion"].(string))
	u.SetKind(identity["kind"].(string))
	u.SetNamespace(key.Namespace)
	u.SetName(key.Name)
	return u
}

// other is what another manager does. It may be refused.
func (p *property) other(key engine.ObjectKey, s step) error {
	if s.apply != nil {
		identity := map[string]any{"apiVersion": key.GroupVersionKind().GroupVersion().String(), "kind": key.Kind}
		return p.applyBody(key, s.by, named(s.apply, identity, key))
	}
	if s.forget {
		key.Subresource = ""
	}
	live, err := p.plugin.Get(p.ctx, key)
	if err != nil {
		return err
	}
	u := &unstructured.Unstructured{Object: edited(live.Object, s.edits)}
	if s.forget {
		// An empty list would be taken for one that is left out.
		u.SetManagedFields([]metav1.ManagedFieldsEntry{{}})
	}
	_, err = p.resource(key).Update(p.ctx, u, metav1.UpdateOptions{FieldManager: s.by}, subresources(key)...)
	return err
}

// change makes one change the plugin's way and holds the outcome against the laws.
func (p *property) change(key engine.ObjectKey, edits []tweak) *violation {
	p.counted["change"]++
	live, err := p.plugin.Get(p.ctx, key)
	if err != nil {
		return &violation{"no answer", err.Error()}
	}
	wanted := edited(live.Object, edits)
	ideal, refusal := p.put(key, wanted)
	w := &countingServer{Server: p.plugin}
	result, err := p.apply(w, key, edits)
	if err != nil {
		return &violation{"the run breaks off", err.Error()}
	}
	p.countResult(result, w.writes)
	final, err := p.plugin.Get(p.ctx, key)
	if err != nil {
		return &violation{"no answer", err.Error()}
	}
	if refusal != nil {
		p.counted["refused by the server"]++
		return checkRefused(live, final, refusal, result)
	}
	v := firstOf(checkAnswer(ideal, final, result), checkOwners(live, ideal, final, result))
	if v != nil || !reflect.DeepEqual(wanted, edited(wanted, edits)) {
		return v // keys that are there twice by now make a change another one each time
	}
	return p.checkAgain(key, edits, final)
}

func firstOf(violations ...*violation) *violation {
	for _, v := range violations {
		if v != nil {
			return v
		}
	}
	return nil
}

// put asks the server what the wanted object would become, if it were not for
// others who write it, and for who owns what.
func (p *property) put(key engine.ObjectKey, wanted map[string]any) (*unstructured.Unstructured, error) {
	return p.resource(key).Update(p.ctx, &unstructured.Unstructured{Object: wanted},
		metav1.UpdateOptions{FieldManager: manager, DryRun: []string{metav1.DryRunAll}, FieldValidation: metav1.FieldValidationStrict},
		subresources(key)...)
}

func (p *property) apply(s write.Server, key engine.ObjectKey, edits []tweak) (write.Result, error) {
	w := *p.writer
	w.Server = s
	return verifyAndWrite(p.ctx, &w, key, func(_ context.Context, live *unstructured.Unstructured, _ string) (*unstructured.Unstructured, error) {
		return &unstructured.Unstructured{Object: edited(live.Object, edits)}, nil
	})
}

// countingServer counts what is meant to be stored.
type countingServer struct {
	write.Server
	writes int
}

// Patch implements write.Server.
func (s *countingServer) Patch(ctx context.Context, key engine.ObjectKey, p cluster.Patch) (*unstructured.Unstructured, error) {
	if !p.DryRun {
		s.writes++
	}
	return s.Server.Patch(ctx, key, p)
}

func (p *property) countResult(r write.Result, writes int) {
	p.counted[string(r.Method)]++
	if !r.Reason.None() {
		p.counted[string(r.Reason.Kind)]++
	}
	if writes > 0 {
		p.counted["written"]++
	}
	if !r.Difference.Expected() {
		p.counted["unexpected difference"]++
	}
}

// checkAgain asks for the same change once more. That the server adds to what is
// asked for, or stores it in another form, is no reason to write again.
func (p *property) checkAgain(key engine.ObjectKey, edits []tweak, was *unstructured.Unstructured) *violation {
	w := &countingServer{Server: p.plugin}
	result, err := p.apply(w, key, edits)
	if err != nil {
		return &violation{"the run breaks off", err.Error()}
	}
	now, err := p.plugin.Get(p.ctx, key)
	switch {
	case err != nil:
		return &violation{"no answer", err.Error()}
	case w.writes > 0 || result.Err != nil:
		return &violation{"asked for again, it is sent again", fmt.Sprintf("%s by %s %s: %v\n%s",
			result.Outcome, result.Method, result.Reason, result.Err, cmp.Diff(content(was), content(now)))}
	case !reflect.DeepEqual(was.Object, now.Object):
		return &violation{"asked for again, it is written again", cmp.Diff(was.Object, now.Object)}
	}
	p.counted["again: "+string(result.Outcome)]++
	return nil
}

// counts is "apply 12, json-patch 3", the names in order.
func counts[N int | int64](m map[string]N) string {
	var out []string
	for _, name := range slices.Sorted(maps.Keys(m)) {
		out = append(out, fmt.Sprintf("%s %d", name, m[name]))
	}
	return strings.Join(out, ", ")
}

// checkRefused demands that what a PUT is refused is a failure, and not written.
func checkRefused(live, final *unstructured.Unstructured, refusal error, r write.Result) *violation {
	if r.Err == nil || r.Outcome != write.Failed {
		return &violation{"what the server refuses is not reported", fmt.Sprintf("%s %s by %s, but a PUT: %v", r.Outcome, r.Reason, r.Method, refusal)}
	}
	if live.GetResourceVersion() != final.GetResourceVersion() {
		return &violation{"what the server refuses is written", r.Err.Error()}
	}
	return nil
}

// checkAnswer demands the object that a PUT would give.
func checkAnswer(ideal, final *unstructured.Unstructured, r write.Result) *violation {
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
func checkOwners(live, ideal, final *unstructured.Unstructured, r write.Result) *violation {
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

// propertyKind is a kind of objects, or an endpoint of theirs, to try changes on.
type propertyKind struct {
	name        string
	key         engine.ObjectKey // without a namespace and a name
	object      map[string]any   // the least that an object needs
	shape       *shape           // of a new object
	changing    *shape           // of what is read and written at the endpoint
	subresource string
}

// trial is what happens to one object. It is data, made from a seed alone, so that
// it can be replayed, and shortened.
type trial struct {
	seed    uint64
	kind    *propertyKind
	creator string
	applied bool // created by server-side apply
	object  map[string]any
	steps   []step
}

// step is a write of the plugin or of another manager.
type step struct {
	by    string // field manager
	edits []tweak
	// apply is what another manager applies; nil where it edits.
	apply map[string]any
	// forget has the object lose its managedFields.
	forget bool
}

func (s step) ours() bool { return s.by == manager }

// String describes the steps.
func (t trial) String() string {
	var b strings.Builder
	verb := "creates"
	if t.applied {
		verb = "applies"
	}
	fmt.Fprintf(&b, "%s %s %s: %s\n", t.creator, verb, t.kind.name, jsonOf(t.object))
	for _, s := range t.steps {
		switch {
		case s.apply != nil:
			fmt.Fprintf(&b, "%s applies %s\n", s.by, jsonOf(s.apply))
		case s.forget:
			fmt.Fprintf(&b, "%s removes the managedFields\n", s.by)
		}
		for _, e := range s.edits {
			fmt.Fprintf(&b, "%s: %s\n", s.by, e)
		}
	}
	return b.String()
}

// changesPerTrial is how often the plugin writes each object, between which
// others may.
const changesPerTrial = 4

func newTrial(seed uint64, kinds []*propertyKind) trial {
	r := rand.New(rand.NewPCG(seed, 0))
	kind := kinds[seed%uint64(len(kinds))]
	t := trial{seed: seed, kind: kind, creator: "kubectl-create"}
	if r.IntN(3) == 0 {
		t.creator, t.applied = "argocd", true
	}
	t.object = underlay(kind.shape.random(r).(map[string]any), kind.object)
	// What the object may look like. Others' applies and the server's defaults
	// are not followed: what is not met, is not changed.
	model := t.object
	for range changesPerTrial {
		for r.IntN(3) == 0 {
			s := kind.othersStep(r, model)
			model = edited(model, s.edits)
			t.steps = append(t.steps, s)
		}
		s := step{by: manager, edits: kind.randomTweaks(r, model)}
		model = edited(model, s.edits)
		t.steps = append(t.steps, s)
	}
	return t
}

// randomTweaks is a change that asks for nothing more when it is made.
func (k *propertyKind) randomTweaks(r *rand.Rand, model map[string]any) []tweak {
	for {
		var edits []tweak
		now := model
		for range 1 + r.IntN(3) {
			e := k.changing.randomTweak(r, now)
			edits, now = append(edits, e), edited(now, []tweak{e})
		}
		if reflect.DeepEqual(edited(now, edits), now) {
			return edits
		}
	}
}

func (k *propertyKind) othersStep(r *rand.Rand, model map[string]any) step {
	switch {
	case r.IntN(12) == 0:
		return step{by: "restore", forget: true}
	case r.IntN(2) == 0 && k.subresource == "":
		return step{by: "argocd", apply: sparse(r, k.changing.random(r).(map[string]any))}
	}
	by := []string{"kubectl-edit", "controller", "before-first-apply"}[r.IntN(3)]
	return step{by: by, edits: k.randomTweaks(r, model)}
}

// sparse leaves out some of what an object's top holds.
func sparse(r *rand.Rand, object map[string]any) map[string]any {
	for _, k := range slices.Sorted(maps.Keys(object)) {
		if r.IntN(4) == 0 {
			delete(object, k)
		}
	}
	return object
}

// underlay puts what is needed under what was made up.
func underlay(madeUp, needed map[string]any) map[string]any {
	out := maps.Clone(needed)
	for k, v := range madeUp {
		below, isMap := needed[k].(map[string]any)
		above, alsoMap := v.(map[string]any)
		switch {
		case isMap && alsoMap:
			out[k] = underlay(above, below)
		case needed[k] == nil || reflect.TypeOf(v).Kind() == reflect.Slice:
			out[k] = v
		}
	}
	return out
}

// shorter are the ways to leave something out of a trial.
func (t trial) shorter() []trial {
	var out []trial
	for i, s := range t.steps {
		without := t
		without.steps = slices.Delete(slices.Clone(t.steps), i, i+1)
		out = append(out, without)
		for j := range s.edits {
			if len(s.edits) == 1 {
				break
			}
			fewer := t
			fewer.steps = slices.Clone(t.steps)
			fewer.steps[i].edits = slices.Delete(slices.Clone(s.edits), j, j+1)
			out = append(out, fewer)
		}
	}
	return append(out, t.simpler()...)
}

// simpler leaves out parts of the object as it was created and applied.
func (t trial) simpler() []trial {
	var out []trial
	for _, object := range without(t.object, t.kind.object) {
		smaller := t
		smaller.object = object
		out = append(out, smaller)
	}
	for i, s := range t.steps {
		for _, body := range without(s.apply, nil) {
			smaller := t
			smaller.steps = slices.Clone(t.steps)
			smaller.steps[i].apply = body
			out = append(out, smaller)
		}
	}
	return out
}

// without lists the copies of a value that lack one entry or element, but none
// that is needed.
func without(object, needed map[string]any) []map[string]any {
	var out []map[string]any
	for _, k := range slices.Sorted(maps.Keys(object)) {
		replaced := func(v any) {
			smaller := maps.Clone(object)
			smaller[k] = v
			out = append(out, smaller)
		}
		if needed[k] == nil {
			smaller := maps.Clone(object)
			delete(smaller, k)
			out = append(out, smaller)
		}
		switch v := object[k].(type) {
		case map[string]any:
			below, _ := needed[k].(map[string]any)
			for _, inner := range without(v, below) {
				replaced(inner)
			}
		case []any:
			for i, x := range v {
				replaced(slices.Delete(slices.Clone(v), i, i+1))
				fields, _ := x.(map[string]any)
				for _, inner := range without(fields, nil) {
					list := slices.Clone(v)
					list[i] = inner
					replaced(list)
				}
			}
		}
	}
	return out
}
