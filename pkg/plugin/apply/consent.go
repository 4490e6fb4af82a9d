package apply

import (
	"context"
	"fmt"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/wording"
)

// UnwritableError ends a run before its first write, because of objects that cannot
// be written. The Results have told which, and why.
type UnwritableError struct {
	Unwritable int
	Objects    int // those that cannot be written, and those that could
}

// Error counts them, and names the ways out.
func (e *UnwritableError) Error() string {
	return fmt.Sprintf("nothing was written: %s of %d cannot be written; mend that, or leave them out with --skip-rejected",
		wording.Plural(e.Unwritable, "object"), e.Objects)
}

// agree asks for what the verification found, and for the yes to it all.
func (x *Executor) agree(ctx context.Context, ready []*Task) ([]*Task, error) {
	ready, err := x.agreeToLosses(ctx, ready)
	switch {
	case err != nil:
		return nil, err
	case x.tally.Rejected > 0 && !x.SkipRejected:
		return nil, &UnwritableError{Unwritable: x.tally.Rejected, Objects: x.tally.Rejected + len(ready)}
	case len(ready) == 0:
		return nil, nil
	}
	for _, t := range ready {
		if why := t.verified.Unverified; why != nil {
			fmt.Fprintf(x.ErrOut, "warning: %v: not verified; whether the server takes the change shows when it is written\n", why)
		}
	}
	if x.Agreed {
		return ready, nil
	}
	return ready, x.Prompt.all(ready, x.tally.Failed, x.MaxChanges)
}

// agreeToLosses asks about each change by which the server would drop live data,
// and reports those that are not agreed to.
func (x *Executor) agreeToLosses(ctx context.Context, ready []*Task) ([]*Task, error) {
	var agreed []*Task
	for _, t := range ready {
		yes, err := x.Writer.AgreeToLoss(ctx, t.verified)
		if err == nil && !yes {
			err = x.report(t, &t.verified.Result)
		}
		if err != nil {
			return nil, err
		}
		if yes {
			agreed = append(agreed, t)
		}
	}
	return agreed, nil
}
