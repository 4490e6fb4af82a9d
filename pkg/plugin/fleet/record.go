package fleet

import (
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/compare"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/packed"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/output"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/redact"
)

// record is an event of a cluster as it is kept.
type record struct {
	output.Event
	before, after packed.Value // the object of a change, where printers show all of it
}

// newRecord returns what is kept of an event on a cluster, as far as printers show it; false for other events.
func (f *Fleet) newRecord(cluster string, e output.Event) (record, bool) {
	switch e := e.(type) {
	case output.Evaluated:
		return f.evaluated(keptChange(e.Change, cluster)), true
	case output.Compared:
		r := *e.Result
		for side, c := range r.Changes {
			if c = keptChange(c, cluster); r.Verdict == compare.Same {
				c.Before, c.After = present(c.Before), present(c.After)
			}
			r.Changes[side] = c
		}
		r.Subject, r.Target = r.Changes[compare.Old].Subject, r.Changes[compare.Old].Target
		return record{Event: output.Compared{Result: &r, Difference: r.Difference()}}, true
	}
	return record{}, false
}

// evaluated keeps a change.
func (f *Fleet) evaluated(c *engine.Change) (r record) {
	r.Event = output.Evaluated{Change: c}
	switch {
	case !c.Changed():
		c.Before, c.After = present(c.Before), present(c.After)
	case f.Outlines:
		c.Before, c.After = outline(c.Before), outline(c.After)
	default: // no printer shows what a server counts for itself
		c.Before, r.before = f.pack(redact.Trim(c.Before, c.Fields, redact.Stored))
		c.After, r.after = f.pack(redact.Trim(c.After, c.Fields, redact.Stored))
	}
	c.Target.Object = c.Before
	return r
}

// pack returns an object packed, and what is left of it; itself if it cannot be.
func (f *Fleet) pack(u *unstructured.Unstructured) (*unstructured.Unstructured, packed.Value) {
	if u == nil {
		return nil, ""
	}
	if p, ok := f.dictionary.Pack(u.Object); ok {
		return &unstructured.Unstructured{}, p
	}
	return u, ""
}

// event returns the event with all that was kept of it.
func (f *Fleet) event(r record) output.Event {
	e, is := r.Event.(output.Evaluated)
	if !is || r.before+r.after == "" {
		return r.Event
	}
	c := *e.Change
	c.Before, c.After = f.unpack(c.Before, r.before), f.unpack(c.After, r.after)
	c.Target.Object = c.Before
	return output.Evaluated{Change: &c}
}

func (f *Fleet) unpack(u *unstructured.Unstructured, p packed.Value) *unstructured.Unstructured {
	if p == "" {
		return u
	}
	object, _ := f.dictionary.Unpack(p).(map[string]any)
	return &unstructured.Unstructured{Object: object}
}

// keptChange returns what is kept of a change on a cluster.
func keptChange(c *engine.Change, cluster string) *engine.Change {
	out := *c
	out.Subject.Cluster, out.Shown = cluster, nil
	out.Target = engine.Target{Key: out.Subject, Object: c.Before, Origin: c.Target.Origin}
	out.Steps = slices.Clone(c.Steps)
	for i := range out.Steps {
		out.Steps[i].After = nil
	}
	return &out
}

// present returns an object without anything in the place of one.
func present(u *unstructured.Unstructured) *unstructured.Unstructured {
	if u == nil {
		return nil
	}
	return &unstructured.Unstructured{}
}

// outline returns an object with that alone of which impact.Workload makes the name of what an object belongs to.
func outline(u *unstructured.Unstructured) *unstructured.Unstructured {
	out := present(u)
	if u == nil {
		return nil
	}
	metadata, _ := u.Object["metadata"].(map[string]any)
	if owners := metadata["ownerReferences"]; owners != nil {
		out.Object = map[string]any{"metadata": map[string]any{"ownerReferences": owners, "labels": metadata["labels"]}}
	}
	return out
}
