// Package write makes changes on the server: from a change to a stored object.
// An Executor runs the Tasks of a preview, a plan, a journal or an undo. A Queue keeps them; a
// Verifier checks permissions and verifies each change; the Executor asks the user, writes with
// one guarded request for each object, keeps the journal, and waits for rollouts.
//
// Writer.Verify reads an object, asks how it should be, plans the request (package
// request) and sends it as a dry run. Writer.Write sends what was verified and
// nothing else. If another client has written the object in between, it is read and
// verified again, and written only if the same change comes out. A request whose
// answer was lost is looked up, and never repeated blindly; what can be repeated,
// the Server repeats (cluster.RetryingClient).
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

// Pace says how fast a run writes, and when it stops.
type Pace struct {
	// MaxFailures is how many writes may fail before no further one is started; 0 is
	// no limit.
	MaxFailures int
	// BatchSize is how many objects are written before a Pause; 0 is all.
	BatchSize int
	Pause     time.Duration
	// Wait waits after each batch until workloads have rolled out, up to Timeout.
	Wait    bool
	Timeout time.Duration
}

// Executor makes the changes that the tasks of a Queue want, once a Verifier has
// verified them and the user has confirmed them. It is the second half of every
// command that writes, and is used for one run.
type Executor struct {
	Queue
	Verifier
	Prompt     *Prompt
	Interrupts *Interrupts // may be nil
	Pace
	// Journal opens the journal before the first write; nil keeps none.
	Journal func() (*journal.Writer, error)
	// Command is typed to resume the run; empty where it cannot be resumed.
	Command string
	// OnVerified is called when every change is verified, before the user is asked, and OnWrite after each
	// write, by several goroutines. Both may be nil.
	OnVerified func() error
	OnWrite    func(context.Context, *Task, *Result)
	// Away is called when the server does not answer and it is open whether requests were stored. It waits,
	// and reports whether that is to be looked up now. With nil it stays open, for a resumed run.
	Away func(ctx context.Context, err error) bool

	// Begun reports that Run came to its writes; whatever ends one before has written nothing.
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

// Run works through the tasks of the queue. The error says why nothing, or not everything,
// was tried; it is ErrInterrupted if the user stopped the run. Failures of single objects are results, which
// the tally counts.
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

// verify verifies every change, and reports those that are not to be written.
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

// ForEach calls do for every number below n, with a number of workers, and passes each
// result to take: one after the other and in order. When take returns that it is
// enough, or one of them fails, no further number is started; those that were started are
// finished and passed on. So take always gets the first numbers, without a gap. The error is the first one.
//
// A cancelled context does not stop it; do has to.
func ForEach[R any](n, workers int, do func(i int) (R, error),
	take func(i int, r R) (enough bool, _ error),
) error {
	var mu sync.Mutex
	var failed error
	started, taken := 0, 0
	done := map[int]R{} // not yet passed on, because an earlier one is missing
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
