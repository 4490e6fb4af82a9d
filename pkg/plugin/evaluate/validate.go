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

// maxPending is how many changes are tried side by side.
const maxPending = 64

// validation sends the changes of a run as server dry runs, several at once, and hands them over
// in their order. What the server says of a change is among its Impacts then.
type validation struct {
	run     *Run
	emit    func(*engine.Change) error
	pending []*engine.Change

	refused int             // changes
	untried wording.Reasons // why there was no dry run of a change
	lacking *permission.Lacking
}

// add has a change tried with others, and then emitted.
func (v *validation) add(ctx context.Context, c *engine.Change) error {
	if v.pending = append(v.pending, c); len(v.pending) < maxPending {
		return nil
	}
	return v.flush(ctx)
}

// flush has the changes tried that wait for others. With a cancelled context none is emitted.
func (v *validation) flush(ctx context.Context) error {
	pending := v.pending
	v.pending = nil
	var broken error
	return write.ForEach(len(pending), v.run.options.Validator.Concurrency,
		func(i int) (failed, _ error) {
			// apply-existing would send neither what admission denies nor a change of an object that
			// something else manages.
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

// pass hands over a change after its dry run. The error ends the run.
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

// untriedError is why the server was not asked about one change.
type untriedError struct{ error }

// Unwrap returns the reason.
func (e *untriedError) Unwrap() error { return e.error }

// try sends a change as apply-existing would, as a dry run, and adds what comes of it. The
// error ends the run, unless it is an *untriedError.
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

// answered returns the impacts of a change after its dry run: what the server says takes the place of what
// it was expected to say.
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

// answers returns what came of a dry run.
func answers(w output.Written) []engine.Impact {
	say := func(code engine.ImpactCode, text, advice string) engine.Impact {
		i := engine.Impact{Code: code, Text: text, Advice: advice}
		if alike := wording.WithoutName(text, w.Key); alike != text {
			i.Brief = alike
		}
		return i
	}
	switch w.Outcome {
	case write.Terminating: // which is an impact of its own
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

// untried returns why the server has not answered; nil if it has, or need not.
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
