package compare

import (
	"context"
	"fmt"
	"regexp"
	"runtime"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/compare"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/compare/variant"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/wording"
)

// basesOfKind is the maximum number of objects of one kind from which variants are derived.
const basesOfKind = 3

// bases collects objects from which variants are derived: the first of each kind, preferably such that a
// side changes. It also knows which differences objects show.
type bases struct {
	shown   map[string]bool            // by likeness
	targets map[string][]engine.Target // by kind
	changed map[string]int             // number of changed ones, which come first
	order   []string
}

func (b *bases) add(r *compare.Result) {
	if r.Verdict.Differs() {
		b.shown[likeness(r)] = true
	}
	if r.Target.Object == nil || r.Target.Key.Subresource != "" {
		return
	}
	kind := r.Target.Object.GroupVersionKind().String()
	all, at := b.targets[kind], b.changed[kind]
	switch {
	case len(all) == 0:
		b.order = append(b.order, kind)
	case at == basesOfKind, !r.Changed() && len(all) == basesOfKind:
		return
	}
	if r.Changed() {
		b.changed[kind]++
	} else {
		at = len(all)
	}
	all = slices.Insert(all, at, r.Target)
	b.targets[kind] = all[:min(len(all), basesOfKind)]
}

func (b *bases) all() []engine.Target {
	var out []engine.Target
	for _, kind := range b.order {
		out = append(out, b.targets[kind]...)
	}
	return out
}

// finding is a difference that variants show, with the first of them.
type finding struct {
	variant variant.Variant
	result  *compare.Result
	count   int
	kinds   []string
}

// variants compares the sides on variants of the objects, and calls emit with the smallest variant for each
// distinct difference that no object shows.
func (r *Run) variants(ctx context.Context, from *bases,
	emit func(*compare.Result) error,
) (*compare.Tally, *variant.Generator, error) {
	o := r.options
	var objects, requests []engine.Selection // that the rules of both sides match
	for _, side := range r.descriptions {
		for i := range side {
			objects, requests = append(objects, side[i].Matches...), append(requests, side[i].Requests...)
		}
	}
	generator := variant.New(variant.Options{
		Policies: r.texts(), Matches: objects, Requests: requests, Reader: r.world.Reader(),
		Mapper: o.World.Mapper, Seed: o.Seed, Limit: o.Variants,
		Named: o.Request.Operation != engine.OperationAuto &&
			o.Request.Operation != engine.OperationCreate, Asked: r.selections,
	})
	tally := r.comparison.NewTally()
	var order []string
	found := map[string]*finding{}
	take := func(v variant.Variant, result *compare.Result) {
		if r.withholds(v, result) {
			tally.Withhold() // which of many variants a rule changes reveals the Secret
			return
		}
		if before := result.Changes[compare.Old].After; before != nil && result.Verdict.Differs() &&
			!generator.Valid(ctx, before) {
			tally.Refused++ // the old policies make an invalid object
			return
		}
		tally.Add(result, wording.Brief)
		r.warn(result, func(text string) { r.warnings[text]++ })
		if !result.Verdict.Differs() {
			return
		}
		key := likeness(result)
		if found[key] == nil {
			found[key] = &finding{variant: v, result: result}
			order = append(order, key)
		}
		found[key].count++
		kind := strings.TrimSpace(engine.ObjectKey{GroupKind: v.Key.GroupKind}.String())
		if !slices.Contains(found[key].kinds, kind) {
			found[key].kinds = append(found[key].kinds, kind)
		}
	}
	batch, done := make([]variant.Variant, 0, 64), 0
	o.Progress.Did("variants compared", 0, o.Variants)
	flush := func() error {
		results, err := r.objects(ctx, batch)
		for i, result := range results {
			if result != nil {
				take(batch[i], result)
			}
		}
		done += len(batch)
		o.Progress.Did("variants compared", done, o.Variants)
		batch = batch[:0]
		return err
	}
	for v := range generator.Variants(ctx, from.all()) {
		if batch = append(batch, v); len(batch) == cap(batch) {
			if err := flush(); err != nil {
				return tally, generator, err
			}
		}
	}
	if err := flush(); err != nil {
		return tally, generator, err
	}
	for _, key := range order {
		if from.shown[key] {
			continue
		}
		result := r.reduce(ctx, generator, found[key])
		if err := emit(result); err != nil {
			return tally, generator, err
		}
	}
	return tally, generator, ctx.Err()
}

// objects compares the sides on variants in parallel.
func (r *Run) objects(ctx context.Context, variants []variant.Variant) ([]*compare.Result, error) {
	results := make([]*compare.Result, len(variants))
	var group errgroup.Group
	group.SetLimit(runtime.GOMAXPROCS(0))
	for i := range variants {
		group.Go(func() (err error) {
			results[i], _, err = r.object(ctx, variants[i])
			return err
		})
	}
	return results, group.Wait()
}

// object compares the sides on a variant in a world that contains it.
func (r *Run) object(ctx context.Context, v variant.Variant) (*compare.Result, *variant.Present, error) {
	world, present, err := r.world.With(v)
	if err != nil {
		return nil, nil, err
	}
	result, err := r.derived.Object(ctx, world, v.Target)
	return result, present, err
}

// selections returns what the rules of both sides ask for on a variant. Its error is reported for the
// variant itself.
func (r *Run) selections(ctx context.Context, v variant.Variant) []engine.Selection {
	_, present, err := r.object(ctx, v)
	if err != nil {
		return nil
	}
	asked, _ := present.Asked()
	return asked
}

// withholds reports whether the result on a variant depends on a Secret, so that it is not shown.
func (r *Run) withholds(v variant.Variant, result *compare.Result) bool {
	o := r.options
	return !o.ShowSecrets && !o.DependingVariants && result.DependsOnSecret() && !engine.IsSecret(v.Object)
}

// reduce returns the result on the smallest variant that shows a difference. If that depends on a Secret,
// the variant stays as it is: the reduced one would reveal it.
func (r *Run) reduce(ctx context.Context, g *variant.Generator, f *finding) *compare.Result {
	want, out := likeness(f.result), f.result
	smallest := f.variant
	var missing []string
	if f.result.Difference().Shown == nil {
		smallest = g.Reduce(ctx, f.variant, func(v variant.Variant) bool {
			result, _, err := r.object(ctx, v)
			if err != nil || result == nil || likeness(result) != want {
				return false
			}
			out = result
			return true
		})
		if _, present, err := r.object(ctx, smallest); err == nil { // evaluated before
			_, missing = present.Asked()
		}
	}
	out.Variant = &compare.Variant{
		Count: f.count, Kinds: f.kinds, Object: smallest.Object,
		Request: smallest.Request, Beside: smallest.Beside, Missing: missing,
	}
	if n := smallest.Namespace; n != nil && len(n.GetLabels())+len(n.GetAnnotations()) > 1 {
		out.Variant.Beside = append([]*unstructured.Unstructured{n}, out.Variant.Beside...)
	}
	return out
}

// likeness is equal for differences with probably the same cause: in the same fields, of a Pod or its
// template, by the same policies.
func likeness(r *compare.Result) string {
	var b strings.Builder
	fmt.Fprint(&b, r.Verdict, r.Operations)
	seen := map[string]bool{}
	for i := range r.Fields {
		f := &r.Fields[i]
		text := fmt.Sprint(number.ReplaceAllString(pathNames(f.Path), "0"), f.Kind,
			f.Rules[compare.Old].Policy, f.Rules[compare.New].Policy)
		if !seen[text] {
			seen[text] = true
			b.WriteString("\x00" + text)
		}
	}
	for _, side := range r.Changes {
		for i := range side.Steps {
			if s := &side.Steps[i]; s.Outcome.Incomplete() {
				b.WriteString("\x00" + s.Rule.Policy + string(s.Outcome))
			}
		}
	}
	return b.String()
}

// number matches a number in the name of a key, such as the index of a container.
var number = regexp.MustCompile(`[0-9]+`)

// pathNames returns the names of the fields of a path, within the Pod template if it is there.
func pathNames(p fieldpath.Path) string {
	var out []string
	for _, e := range p {
		if e.FieldName != nil {
			out = append(out, *e.FieldName)
		}
	}
	text := strings.Join(out, ".")
	text = strings.TrimPrefix(text, "spec.jobTemplate.")
	return strings.TrimPrefix(text, "spec.template.")
}

// texts returns the policies of both sides.
func (r *Run) texts() []*unstructured.Unstructured {
	var out []*unstructured.Unstructured
	for _, side := range r.options.Sides {
		for _, d := range side.Own() {
			out = append(out, d.Object())
		}
	}
	return out
}
