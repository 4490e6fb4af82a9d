package e2e

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
)

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
