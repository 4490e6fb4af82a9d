package evaluation

import (
	"cmp"
	"context"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/diff"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/limit"
)

// change turns a recorded target into a Change, in which each field has the last rule that wrote it.
func (p *pass) change(t engine.Target, scoped bool) (*engine.Change, error) {
	rec := p.rec
	c := &engine.Change{Subject: t.Key, Target: t, Scoped: scoped, Steps: rec.steps}
	if scoped {
		c.Asked = p.own
	}
	before, after := cmp.Or(t.Written, t.Object), rec.state
	c.Before, c.After = before, before
	writes := rec.writes()
	if len(writes) == 0 {
		return c, p.ctx.Err()
	}
	// other spellings and defaults, which a server adds to any manifest, are left out
	if before != t.Object {
		after = &unstructured.Unstructured{Object: diff.AsWritten(before.Object, t.Object.Object,
			after.Object, rec.typ())}
	}
	fields := slices.Clone(writes[0].Fields)
	if len(writes) > 1 || before != t.Object {
		found, err := between(before, after, rec.typ())
		if err != nil {
			c.Steps = append(c.Steps, engine.Step{Rule: allPolicies, Outcome: engine.Failed, Err: err})
			return c, p.ctx.Err()
		}
		fields = make([]engine.FieldChange, 0, len(found))
		for _, f := range found {
			fields = writes.append(fields, f)
		}
		for _, w := range writes[1:] { // the paths of each are enough, and a string to which many write is long
			for i := range w.Fields {
				w.Fields[i].From, w.Fields[i].To = nil, nil
			}
		}
	}
	if len(fields) > 0 {
		c.After, c.Fields = after, fields
	}
	return c, p.ctx.Err()
}

// between lists the differences between two states of an object, unless the new values are too large.
func between(before, after *unstructured.Unstructured, t diff.Type) ([]engine.FieldChange, error) {
	fields := diff.Compare(before.Object, after.Object, t)
	size := 0
	for i := range fields {
		size += limit.Bytes(fields[i].To)
	}
	return fields, limit.Size(size)
}

// writers are the steps that changed an object, to find the writer of a field.
type writers []*engine.Step

// writes are the steps that changed the object.
func (r *recorder) writes() (out writers) {
	for i := range r.steps {
		if r.steps[i].Outcome == engine.Changed {
			out = append(out, &r.steps[i])
		}
	}
	return out
}

// touching returns the first and the last write of the path, a part of it, or a parent of it; the last of all
// if there is none.
func (w writers) touching(p fieldpath.Path) (first, last *engine.Step) {
	touches := func(f engine.FieldChange) bool {
		n := min(len(p), len(f.Path))
		return p[:n].Equals(f.Path[:n])
	}
	for _, s := range w {
		if slices.ContainsFunc(s.Fields, touches) {
			first, last = cmp.Or(first, s), s
		}
	}
	end := w[len(w)-1]
	return cmp.Or(first, end), cmp.Or(last, end)
}

// append splits an added map that several rules filled, so that each of its fields has the rule that wrote
// it. Paths with an index may have shifted between two rules; then no write is found, and the last rule that
// changed anything is named.
func (w writers) append(out []engine.FieldChange, f engine.FieldChange) []engine.FieldChange {
	first, last := w.touching(f.Path)
	added, isMap := f.To.(map[string]any)
	if f.Kind != engine.Added || !isMap || len(added) == 0 || first == last {
		f.Writer = last.Fields[0].Writer
		return append(out, f)
	}
	for _, name := range slices.Sorted(maps.Keys(added)) {
		path := append(slices.Clone(f.Path), fieldpath.PathElement{FieldName: &name})
		out = w.append(out, engine.FieldChange{Path: path, Kind: f.Kind, To: added[name]})
	}
	return out
}

// typeOf returns how the server reads a kind. Without a readable schema, a kind is compared without one.
func (e *Evaluation) typeOf(ctx context.Context, gvk schema.GroupVersionKind) diff.Type {
	known, _ := e.types.Do(ctx, gvk,
		func(ctx context.Context) (any, error) { return diff.TypeOf(ctx, e.reader, gvk), nil })
	t, _ := known.(diff.Type)
	return t
}
