package evaluate

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/impact"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/output"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/permission"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/wording"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/write"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/write/request"
)

// maxPending is the maximum number of changes that are tried together.
const maxPending = 64

// validation sends the changes of a run as server dry runs, several at once, and emits them in their order,
// with the server's answers among their Impacts.
type validation struct {
	run     *Run
	emit    func(*engine.Change) error
	pending []*engine.Change

	refused int             // number of changes
	untried wording.Reasons // why there was no dry run of a change
	lacking *permission.Lacking
}

// add adds a change, and tries and emits all pending ones if these are many.
func (v *validation) add(ctx context.Context, c *engine.Change) error {
	if v.pending = append(v.pending, c); len(v.pending) < maxPending {
		return nil
	}
	return v.flush(ctx)
}

// flush tries and emits the pending changes; none with a cancelled context.
func (v *validation) flush(ctx context.Context) error {
	pending := v.pending
	v.pending = nil
	var broken error
	return write.ForEach(len(pending), v.run.options.Validator.Concurrency,
		func(i int) (failed, _ error) {
			// apply-existing sends neither changes that admission denies nor changes of managed objects
			if c := pending[i]; c.Changed() && !c.Denied() && c.Before != nil && len(impact.Managed(c.Before)) == 0 {
				failed = engine.Guard(func() error { return v.try(ctx, c) })
			}
			return failed, nil
		},
		func(i int, failed error) (enough bool, _ error) {
			if broken == nil {
				broken = v.pass(ctx, pending[i], failed)
			}
			return false, broken
		})
}

// pass emits a change after its dry run. The error ends the run.
func (v *validation) pass(ctx context.Context, c *engine.Change, err error) error {
	var why *untriedError
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case errors.As(err, &why):
		v.untried.Add(c.Subject, why.Error())
		v.lacking.Of(why)
	case err != nil:
		return err
	case slices.ContainsFunc(c.Impacts, func(i engine.Impact) bool { return i.Code == engine.ImpactRefused }):
		v.refused++
	}
	return v.emit(c)
}

// untriedError is why the server could not try a change.
type untriedError struct{ error }

// Unwrap returns the reason.
func (e *untriedError) Unwrap() error { return e.error }

// try sends a change as a dry run, as apply-existing would, and adds the answer to its impacts. The error
// ends the run, unless it is an *untriedError.
func (v *validation) try(ctx context.Context, c *engine.Change) error {
	x, t := v.run.options.Validator, write.NewTask(v.run, c)
	needs, err := x.RequiredPermissions(ctx, t)
	if err != nil {
		return err
	}
	missing, err := write.MissingPermissions(ctx, x.Access, needs, 1)
	if err == nil && len(missing) > 0 { // without an answer, the dry run shows what is forbidden
		return &untriedError{write.Forbidden(missing[0])}
	}
	verified, err := x.Verify(ctx, t, c.Target.Object)
	if err != nil {
		return err
	}
	w := output.Written{Result: &verified.Result}
	c.Impacts = answered(c.Impacts, w)
	if c.Shown != nil {
		c.Shown.Impacts = answered(c.Shown.Impacts, w.ToShow())
	}
	if why := untried(w.ToShow()); why != nil {
		return &untriedError{why}
	}
	return nil
}

// answered returns the impacts of a change after its dry run, in which answers replace predictions.
func answered(impacts []engine.Impact, w output.Written) []engine.Impact {
	said := answers(w)
	if w.Unverified != nil || len(said) > 0 && said[0].Code == engine.ImpactUntried {
		return slices.Concat(impacts, said)
	}
	var out []engine.Impact
	for _, i := range impacts {
		switch i.Code {
		case engine.ImpactInvalid, engine.ImpactImmutable:
			if w.Outcome == write.Failed {
				said[0].Fields, said[0].Advice = append(said[0].Fields, i.Fields...), cmp.Or(said[0].Advice, i.Advice)
			}
		case engine.ImpactRollout:
			if w.Outcome != write.Failed {
				out = append(out, i)
			}
		case engine.ImpactOwned:
			if w.Outcome != write.Conflicted {
				out = append(out, i)
			}
		default:
			out = append(out, i)
		}
	}
	return append(out, said...)
}

// answers returns the result of a dry run as impacts.
func answers(w output.Written) []engine.Impact {
	say := func(code engine.ImpactCode, text, advice string) engine.Impact {
		i := engine.Impact{Code: code, Text: text, Advice: advice}
		if alike := wording.WithoutName(text, w.Key); alike != text {
			i.Brief = alike
		}
		return i
	}
	switch w.Outcome {
	case write.Terminating: // has its own impact
		return nil
	case write.Deleted, write.Replaced:
		return []engine.Impact{say(engine.ImpactUntried, "the object is "+w.Verb()+" by apply-existing", "")}
	case write.Conflicted:
		return []engine.Impact{say(engine.ImpactRefused, w.Explanation(), "")}
	case write.Drifted:
		return []engine.Impact{say(engine.ImpactUntried, "no dry run: "+w.Explanation(), "preview it again")}
	case write.Unchanged, write.ServerKeepsValue:
		return []engine.Impact{say(engine.ImpactAltered, "the server would leave the object as it is", "")}
	case write.Failed:
		if why := untried(w); why != nil {
			return []engine.Impact{say(engine.ImpactUntried, "no dry run: "+why.Error(), "")}
		}
		refusal := w.Explanation()
		if rejected := (*write.RejectedError)(nil); errors.As(w.Err, &rejected) {
			refusal = "the server refuses it: " + rejected.Text
		}
		return []engine.Impact{say(engine.ImpactRefused, refusal, "")}
	}
	var out []engine.Impact
	if w.Unverified != nil {
		out = append(out, say(engine.ImpactUntried, "no dry run: "+untried(w).Error(), ""))
	}
	if lost := w.Difference.Of(request.Lost); len(lost) > 0 {
		out = append(out, say(engine.ImpactAltered, "the server would drop "+strings.Join(lost.Paths(), ", ")+", which the change means to keep", "apply-existing asks before it writes this object"))
	}
	for _, text := range w.Differences() {
		out = append(out, say(engine.ImpactAltered, text, ""))
	}
	return out
}

// untried returns why the server could not try a change; nil if it has, or need not.
func untried(w output.Written) error {
	var busy *write.BusyError
	switch {
	case w.Unverified != nil:
		return w.UnverifiedCause()
	case w.Outcome == write.Drifted, errors.As(w.Err, &busy):
		return w.Cause()
	}
	return nil
}
