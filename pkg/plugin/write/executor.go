// Package write turns changes into writes to stored objects. An Executor runs the Tasks of a preview, a plan,
// a journal or an undo. A Queue holds them; a Verifier checks permissions and verifies each change; the
// Executor asks the user, sends one guarded request per object, keeps the journal, and waits for rollouts.
//
// Writer.Verify reads an object, computes its wanted state, plans the request (package request) and sends it
// as a dry run. Writer.Write sends exactly the verified request. If another client has written the object in
// between, it is verified again, and written only if the change is the same. If the response is lost, the
// outcome is looked up instead of repeating the request blindly; the Server repeats requests that are safe to
// repeat (cluster.RetryingClient).
package write

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/write/journal"
)

// Pace limits how fast a run writes, and when it stops.
type Pace struct {
	// MaxFailures is the number of failed writes after which no further one is started; 0: no limit.
	MaxFailures int
	// BatchSize is the number of objects to write before a Pause; 0: all.
	BatchSize int
	Pause     time.Duration
	// Wait waits for rollouts after each batch, up to Timeout.
	Wait    bool
	Timeout time.Duration
}

// Executor makes the changes of a Queue's tasks, once a Verifier has verified them and the user has confirmed
// them. Every command that writes ends with it. It is used for one run.
type Executor struct {
	Queue
	Verifier
	Prompt     *Prompt
	Interrupts *Interrupts // may be nil
	Pace
	// Journal opens the journal before the first write; nil: no journal.
	Journal func() (*journal.Writer, error)
	// Command is the command to resume the run; empty if it cannot be resumed.
	Command string
	// OnVerified is called when every change is verified, before the confirmation; OnWrite after each write,
	// concurrently. Both may be nil.
	OnVerified func() error
	OnWrite    func(context.Context, *Task, *Result)
	// Away is called when the server does not answer and requests may have been stored. It waits, and reports
	// whether to look them up now. If nil, they are left to a resumed run.
	Away func(ctx context.Context, err error) bool

	// Begun reports that Run reached its writes; before that, nothing was written.
	Begun bool
}

// ErrInterrupted ends a run that the user stopped.
var ErrInterrupted = errors.New("interrupted")

// NothingWritten wraps the error that ended a run before its first write.
func NothingWritten(err error) error {
	if errors.Is(err, context.Canceled) {
		err = ErrInterrupted
	}
	return fmt.Errorf("nothing was written: %w", err)
}

// Run runs the tasks of the queue. The error is the reason why not everything was tried, such as
// ErrInterrupted if the user stopped the run. Failures of single objects are results, which the tally counts.
func (x *Executor) Run(ctx context.Context) (Tally, error) {
	err := x.work(ctx)
	err = errors.Join(err, x.closeJournal(ctx.Err() != nil, err))
	if err != nil {
		err = errors.Join(err, x.reportLeft())
	}
	return x.tally, err
}

func (x *Executor) work(ctx context.Context) error {
	if x.Writer.DryRun != DryRunClient {
		if err := x.checkPermissions(ctx, x.tasks); err != nil {
			return NothingWritten(err)
		}
	}
	tasks, err := x.resolvePending(ctx, x.tasks)
	if err != nil {
		return NothingWritten(err)
	}
	counted, err := x.confirmMany(ctx, tasks)
	if err != nil {
		return err
	}
	ready, err := x.verify(ctx, tasks)
	if err != nil {
		return NothingWritten(err)
	}
	if x.IsDryRun() {
		return nil
	}
	if ready, err = x.confirm(ctx, ready, counted); err != nil || len(ready) == 0 {
		return err
	}
	x.arrange(ready)
	if err := x.openJournal(ready); err != nil {
		return NothingWritten(err)
	}
	x.Begun = true
	return x.write(ctx, ready)
}

// verify verifies every change, and reports the ones that are not written.
func (x *Executor) verify(ctx context.Context, tasks []*Task) ([]*Task, error) {
	ready := make([]*Task, 0, len(tasks))
	x.Meter.Start()
	defer x.Meter.Stop()
	x.Meter.Did("objects verified", 0, len(tasks))
	err := ForEach(len(tasks), x.Concurrency,
		func(i int) (*Verified, error) {
			return x.Verify(ctx, tasks[i], x.take(tasks[i]))
		},
		func(i int, v *Verified) (enough bool, err error) {
			x.Meter.Did("objects verified", i+1, len(tasks))
			switch {
			case v == nil:
			case v.Outcome != Planned, x.IsDryRun():
				err = errors.Join(x.recordUnwritten(tasks[i], v), x.report(tasks[i], &v.Result))
			default:
				tasks[i].verified = v
				ready = append(ready, tasks[i])
			}
			return false, err
		})
	return ready, err
}

// ForEach calls do for every number below n in several workers, and passes the results to take, one at a time
// and in order. When take reports that it is done, or one of them fails, no further number is started;
// started ones are finished and passed on. So take always gets the first numbers, without a gap. It returns
// the first error.
//
// Cancelling the context does not stop it; do has to.
func ForEach[R any](n, workers int, do func(i int) (R, error),
	take func(i int, r R) (enough bool, _ error),
) error {
	var mu sync.Mutex
	var failed error
	started, taken := 0, 0
	done := map[int]R{} // not passed on yet: an earlier one is missing
	var group sync.WaitGroup
	for range min(max(workers, 1), n) {
		group.Go(func() {
			mu.Lock()
			defer mu.Unlock()
			for started < n {
				i := started
				started++
				mu.Unlock()
				r, err := do(i)
				mu.Lock()
				done[i] = r
				if err != nil {
					n, failed = 0, cmp.Or(failed, err)
				}
				for r, ok := done[taken]; ok; r, ok = done[taken] {
					delete(done, taken)
					taken++
					if enough, err := take(taken-1, r); enough || err != nil {
						n, failed = 0, cmp.Or(failed, err)
					}
				}
			}
		})
	}
	group.Wait()
	return failed
}
