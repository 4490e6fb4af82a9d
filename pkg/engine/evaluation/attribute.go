package evaluation

import (
	"context"
	"maps"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/diff"
)

// change turns what was recorded into a Change: it compares neighbouring
// states, so that each field has the rule that wrote it last, and a rule that
// wrote what the server reads as the same is reported as having changed nothing.
func (e *Evaluation) change(ctx context.Context, t engine.Target, scoped bool, rec *recorder) (*engine.Change, error) {
	c := &engine.Change{
		Subject: t.Key, Before: t.Object, After: t.Object, Target: t, Scoped: scoped,
		Steps: rec.steps, NotMatched: rec.notMatched,
	}
	typ := func() diff.Type { return e.types.of(ctx, e.world.Reader, t.Object.GroupVersionKind()) }
	var writes []write
	after := t.Object
	for i := range c.Steps {
		s := &c.Steps[i]
		if s.Outcome != engine.Changed {
			continue
		}
		fields := diff.Compare(after.Object, s.After.Object, typ())
		after = s.After
		if len(fields) == 0 {
			s.Outcome, s.After = engine.Unchanged, nil
			continue
		}
		s.Fields = fields
		writes = append(writes, write{rule: s.Rule, fields: fields})
	}
	if len(writes) == 0 {
		return c, ctx.Err()
	}
	fields := writes[0].fields
	if len(writes) > 1 {
		fields = diff.Compare(t.Object.Object, after.Object, typ())
	}
	if len(fields) > 0 {
		c.After, c.Fields = after, attribute(fields, writes)
	}
	return c, ctx.Err()
}

// write is what one rule wrote.
type write struct {
	rule   engine.RuleRef
	fields []engine.FieldChange
}

// attribute gives each field its last writer.
func attribute(fields []engine.FieldChange, writes []write) []engine.FieldChange {
	out := make([]engine.FieldChange, 0, len(fields))
	for _, f := range fields {
		out = appendAttributed(out, f, writes)
	}
	return out
}

// appendAttributed takes an added map apart when several rules filled it, so
// that each of its fields has the rule that wrote it.
func appendAttributed(out []engine.FieldChange, f engine.FieldChange, writes []write) []engine.FieldChange {
	added, isMap := f.To.(map[string]any)
	if f.Kind != engine.Added || !isMap || len(added) == 0 || !sharedBySeveral(f.Path, writes) {
		f.Rule = lastWriter(f.Path, writes)
		return append(out, f)
	}
	for _, name := range slices.Sorted(maps.Keys(added)) {
		path := append(slices.Clone(f.Path), fieldpath.PathElement{FieldName: &name})
		out = appendAttributed(out, engine.FieldChange{Path: path, Kind: f.Kind, To: added[name]}, writes)
	}
	return out
}

func sharedBySeveral(p fieldpath.Path, writes []write) bool {
	n := 0
	for _, w := range writes {
		if w.touches(p) {
			n++
		}
	}
	return n > 1
}

// touches reports whether the rule wrote the path, a part of it, or a parent of it.
func (w write) touches(p fieldpath.Path) bool {
	return slices.ContainsFunc(w.fields, func(f engine.FieldChange) bool {
		n := min(len(p), len(f.Path))
		return p[:n].Equals(f.Path[:n])
	})
}

// lastWriter is the last rule that touched the path. Paths with an index may
// have shifted between two rules; then no write is found, and the last rule that
// changed anything is named.
func lastWriter(p fieldpath.Path, writes []write) engine.RuleRef {
	for _, w := range slices.Backward(writes) {
		if w.touches(p) {
			return w.rule
		}
	}
	return writes[len(writes)-1].rule
}

// typeCache holds how the server reads each kind.
type typeCache struct {
	mu    sync.Mutex
	types map[schema.GroupVersionKind]diff.Type
}

// of asks the reader once for each kind. A kind whose schema is not known, or
// cannot be read, is compared without one.
func (c *typeCache) of(ctx context.Context, r engine.Reader, gvk schema.GroupVersionKind) diff.Type {
	c.mu.Lock()
	defer c.mu.Unlock()
	if t, ok := c.types[gvk]; ok {
		return t
	}
	t := diff.TypeOf(ctx, r, gvk)
	if c.types == nil {
		c.types = map[schema.GroupVersionKind]diff.Type{}
	}
	c.types[gvk] = t
	return t
}
