package e2e

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-mutate/kubectl-mutate/internal/tier"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/apply"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/cluster"
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

func (p *property) apply(s apply.Server, key engine.ObjectKey, edits []tweak) (apply.Result, error) {
	w := *p.writer
	w.Server = s
	return verifyAndWrite(p.ctx, &w, key, func(_ context.Context, live *unstructured.Unstructured, _ string) (*unstructured.Unstructured, error) {
		return &unstructured.Unstructured{Object: edited(live.Object, edits)}, nil
	})
}

// countingServer counts what is meant to be stored.
type countingServer struct {
	apply.Server
	writes int
}

// Patch implements apply.Server.
func (s *countingServer) Patch(ctx context.Context, key engine.ObjectKey, p cluster.Patch) (*unstructured.Unstructured, error) {
	if !p.DryRun {
		s.writes++
	}
	return s.Server.Patch(ctx, key, p)
}

func (p *property) countResult(r apply.Result, writes int) {
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
