package fleet

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/compare"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/output"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/redact"
)

// record is an event of a cluster as it is kept: one of the two.
type record struct {
	Evaluated *engine.Change
	Compared  *compare.Result
}

// newRecord returns what is kept of an event, as far as printers show it; nil for other events.
func newRecord(e output.Event, outlines bool) *record {
	switch e := e.(type) {
	case output.Evaluated:
		c := keptChange(e.Change)
		switch {
		case !c.Changed():
			c.Before, c.After = present(c.Before), present(c.After)
		case outlines:
			c.Before, c.After = outline(c.Before), outline(c.After)
		default: // no printer shows what a server counts for itself
			c.Before, c.After = redact.Trim(c.Before, c.Fields, redact.Stored), redact.Trim(c.After, c.Fields, redact.Stored)
		}
		return &record{Evaluated: c}
	case output.Compared:
		r := *e.Result
		r.Subject, r.Target = engine.ObjectKey{}, engine.Target{}
		for side, c := range r.Changes {
			c = keptChange(c)
			if r.Verdict == compare.Same {
				c.Before, c.After = present(c.Before), present(c.After)
			}
			r.Changes[side] = c
		}
		return &record{Compared: &r}
	}
	return nil
}

// keptChange returns what is kept of a change.
func keptChange(c *engine.Change) *engine.Change {
	out := *c
	out.Target, out.Shown = engine.Target{Origin: c.Target.Origin}, nil
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

// event returns the event on a cluster.
func (r *record) event(cluster string) (output.Event, error) {
	switch {
	case r.Evaluated != nil:
		return output.Evaluated{Change: shownChange(r.Evaluated, cluster)}, nil
	case r.Compared != nil && r.Compared.Changes[compare.Old] != nil && r.Compared.Changes[compare.New] != nil:
		out := r.Compared
		for _, c := range out.Changes {
			shownChange(c, cluster)
		}
		out.Subject, out.Target = out.Changes[compare.Old].Subject, out.Changes[compare.Old].Target
		return output.Compared{Result: out, Difference: out.Difference()}, nil
	}
	return nil, fmt.Errorf("reading what was kept: %w", errShort)
}

// shownChange puts back what keptChange leaves out.
func shownChange(c *engine.Change, cluster string) *engine.Change {
	c.Subject.Cluster = cluster
	c.Target = engine.Target{Key: c.Subject, Object: c.Before, Origin: c.Target.Origin}
	return c
}
