package impact

import (
	"context"
	"slices"
	"sync"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/evaluation"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/write/request"
)

// Reviewer adds to Changes what they mean beyond their fields. It is safe for concurrent use, and serves one
// run.
type Reviewer struct {
	// Reader finds autoscalers and the objects of managers; may be nil.
	Reader engine.Reader
	// FieldManager is the name under which the change would be written.
	FieldManager string
	// Unchecked does not check values against the schema of their kind.
	Unchecked bool

	listed engine.Memo
	read   engine.Memo // sources of managers, by their objects
	// repeats caches the evaluation of results by kind of change: a rule that appends to one object appends to
	// all.
	repeats sync.Map
}

// Review is for evaluation.Options. The first object of a kind of change represents all others. The error of
// the returned function is the context's, or ends an evaluation.
func (r *Reviewer) Review(c *engine.Change) func(context.Context, *evaluation.Evaluation) error {
	again, _ := r.repeats.LoadOrStore(kindOf(c), &repeat{first: c})
	return func(ctx context.Context,
		e *evaluation.Evaluation,
	) error {
		return r.review(ctx, e, c, again.(*repeat))
	}
}

func (r *Reviewer) review(ctx context.Context, e *evaluation.Evaluation, c *engine.Change,
	again *repeat,
) error {
	if err := again.evaluate(ctx, e); err != nil {
		return err
	}
	if c.Changed() && !r.Unchecked {
		c.Impacts = append(c.Impacts, r.invalid(ctx, c)...)
	}
	if c.Changed() && live(c) {
		if err := r.live(ctx, c); err != nil {
			return err
		}
	}
	c.Impacts = slices.Concat(c.Impacts, again.overwritten(c), again.notIdempotent(c))
	return nil
}

// live returns the impacts of a change to an existing object: first what prevents it, then its consequences.
func (r *Reviewer) live(ctx context.Context, c *engine.Change) error {
	if c.Before.GetDeletionTimestamp() != nil {
		c.Impacts = append(c.Impacts, engine.Impact{Code: engine.ImpactTerminating, Text: "the object is being deleted, so apply-existing leaves it alone"})
		return nil
	}
	scaled, err := r.autoscaled(ctx, c)
	if err != nil {
		return err
	}
	managed, err := r.managed(ctx, c.Before)
	if err != nil {
		return err
	}
	owners := request.Owners(c.Before, r.FieldManager)
	c.Impacts = slices.Concat(c.Impacts, ImmutableRefusals(c), managed, ownedFields(c, owners), scaled,
		r.applied(ctx, c), coOwned(owners, r.FieldManager), wouldCoOwn(c, owners, r.FieldManager))
	if !c.Refused() {
		c.Impacts = append(c.Impacts, Rollout(c)...)
	}
	return nil
}

// live reports whether a server has the object: a manifest that was never applied has no owners and no Pods,
// and may be written in any way.
func live(c *engine.Change) bool {
	return c.Before != nil && c.Before.GetUID() != ""
}
