package apply

import (
	"context"
	"errors"
	"fmt"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/wording"
)

// UnwritableError ends a run before its first write, because of objects that cannot
// be written. Their results have been reported.
type UnwritableError struct {
	Unwritable int
	Objects    int // those that cannot be written, and those that could
}

// Error counts them, and says what can be done.
func (e *UnwritableError) Error() string {
	return fmt.Sprintf("nothing was written: %s of %d cannot be written; fix them, or skip them with --skip-rejected",
		wording.Plural(e.Unwritable, "object"), e.Objects)
}

// confirm asks about what the verification found, and then about all of the run, of which so many objects were counted.
func (x *Executor) confirm(ctx context.Context, ready []*Task, counted int) ([]*Task, error) {
	ready, err := x.confirmLosses(ctx, ready)
	switch {
	case err != nil:
		return nil, err
	case x.tally.Rejected > 0 && !x.SkipRejected:
		return nil, &UnwritableError{Unwritable: x.tally.Rejected, Objects: x.tally.Rejected + len(ready)}
	case len(ready) == 0:
		return nil, nil
	}
	if x.OnVerified != nil {
		if err := x.OnVerified(); err != nil {
			return nil, err
		}
	}
	x.warnOfUnverified(ready)
	if x.Confirmed {
		return ready, nil
	}
	if len(ready) > counted { // what was managed when it was shown is so no more
		if err := x.Prompt.ConfirmMany(len(ready), x.MaxChanges); err != nil {
			return nil, err
		}
	}
	return ready, x.Prompt.Confirm(x.Prompt.question(ready, x.tally.Failed+x.tally.LeftAlone))
}

// confirmMany asks about a run over more objects than MaxChanges, those that are left out because
// something else manages them not counted; the others are. What was confirmed before is not asked about.
func (x *Executor) confirmMany(tasks []*Task) (counted int, _ error) {
	for _, t := range tasks {
		t.managed = t.isShownManaged()
		if x.IncludeManaged || !t.managed {
			counted++
		}
	}
	if x.Confirmed || x.IsDryRun() {
		return counted, nil
	}
	return counted, x.Prompt.ConfirmMany(counted, x.MaxChanges)
}

// warnOfUnverified warns, once for each reason, of changes that were not tried.
func (x *Executor) warnOfUnverified(ready []*Task) {
	var unverified wording.Reasons
	for _, q := range ready {
		var why *ObjectError
		if errors.As(q.verified.Unverified, &why) {
			unverified.Add(q.Key, why.Err.Error())
		}
	}
	for _, why := range unverified.All() {
		fmt.Fprintf(x.ErrOut, "warning: %s: %s: not verified by a dry run; the server may still reject the write\n", why.Names(), why.Text)
	}
}

// confirmLosses asks about each change by which the server would drop live data,
// and reports those that are not agreed to.
func (x *Executor) confirmLosses(ctx context.Context, ready []*Task) ([]*Task, error) {
	agreed := make([]*Task, 0, len(ready))
	for _, t := range ready {
		if len(t.verified.losses()) == 0 {
			agreed = append(agreed, t)
			continue
		}
		yes, err := x.Writer.ConfirmLoss(ctx, t.verified)
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
