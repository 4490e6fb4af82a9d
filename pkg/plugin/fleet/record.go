package fleet

import (
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/compare"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/output"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/redact"
)

// kept returns what is kept of an event on a cluster, as far as printers show it; nil for other events.
func kept(cluster string, e output.Event) output.Event {
	switch e := e.(type) {
	case output.Evaluated:
		c := keptChange(e.Change, cluster)
		// No printer shows what a server counts for itself.
		c.Before, c.After = redact.Trim(c.Before, c.Fields, redact.Stored), redact.Trim(c.After, c.Fields, redact.Stored)
		if !c.Changed() {
			c.Before, c.After = present(c.Before), present(c.After)
		}
		c.Target.Object = c.Before
		return output.Evaluated{Change: c}
	case output.Compared:
		r := *e.Result
		for side, c := range r.Changes {
			if c = keptChange(c, cluster); r.Verdict == compare.Same {
				c.Before, c.After = present(c.Before), present(c.After)
			}
			r.Changes[side] = c
		}
		r.Subject, r.Target = r.Changes[compare.Old].Subject, r.Changes[compare.Old].Target
		return output.Compared{Result: &r, Difference: r.Difference()}
	}
	return nil
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
