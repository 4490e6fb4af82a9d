// Package write makes changes on the server: from a change to a stored object.
// An Executor runs the Tasks of a preview, a plan, a journal or an undo: it checks
// permissions, verifies each change, asks the user, writes with one guarded
// request for each object, keeps the journal, and waits for rollouts.
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
	"io"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/snapshot"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/impact"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/wording"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/write/journal"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/write/plan"
)

// Options say how a run writes.
type Options struct {
	journal.Allowed
	// Concurrency is how many objects are verified, or written, at once; 1 or more.
	Concurrency int
	// MaxFailures is how many writes may fail before no further one is started; 0 is
	// no limit.
	MaxFailures int
	// MaxChanges is how many objects a plain yes covers; 0 is not a limit.
	MaxChanges int
	// BatchSize is how many objects are written before a Pause; 0 is all.
	BatchSize int
	Pause     time.Duration
	// Wait waits after each batch until workloads have rolled out, up to Timeout.
	Wait    bool
	Timeout time.Duration
}

// Executor makes the changes that tasks want. It is the second half of every
// command that writes, and is used for one run.
type Executor struct {
	Options
	Hooks
	Command string // to type for resuming the run
	// Writer sends the requests. The Executor sets its Allowed, Confirm, Journal and Slots.
	Writer *Writer
	Prompt *Prompt
	// Access is asked whether the user may write, and Mapper for the resources.
	Access engine.Authorizer
	Mapper meta.RESTMapper
	// Journal opens the journal before the first write; nil keeps none.
	Journal func() (*journal.Writer, error)
	// Confirmed reports that the user has confirmed the changes before, so that
	// nothing is asked.
	Confirmed bool
	ErrOut    io.Writer
	Meter     *wording.Meter // of the verification; may be nil
	// Away is called when the server does not answer and it is open whether requests were stored. It waits,
	// and reports whether that is to be looked up now. With nil it stays open, for a resumed run.
	Away func(ctx context.Context, err error) bool

	// Begun reports that Run came to its writes; whatever ends one before has written nothing.
	Begun bool

	tasks       []*Task
	triggeredBy map[engine.ObjectKey][]*Task // those whose changes an object triggers, by Named
	texts       snapshot.Dictionary          // of the objects that tasks hold
	held        int                          // bytes of these
	tally       Tally
}

// Hooks are what a run tells its caller. All but Report may be nil.
type Hooks struct {
	// Report is called with the result of each object, one after the other.
	Report func(*Result) error
	// OnWrite is called after each write, by several goroutines, and OnResult with
	// each result, one after the other.
	OnWrite  func(context.Context, *Task, *Result)
	OnResult func(*Task, *Result)
	// OnVerified is called when every change is verified, before the user is asked.
	OnVerified func() error
	// NotTried is called at the end of a run that stopped early, for each object that
	// has no result.
	NotTried func(*Result) error
	// ShowDrift shows what was planned and what would be done now.
	ShowDrift func(*plan.Drift) error
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

// IsDryRun reports whether nothing is to be written.
func (x *Executor) IsDryRun() bool { return x.Writer.DryRun != DryRunNone }

// Run works through the tasks that are kept, and then these. The error says why nothing, or not everything,
// was tried; it is ErrInterrupted if the user stopped the run. Failures of single objects are results, which
// the tally counts.
func (x *Executor) Run(ctx context.Context, tasks []*Task) (Tally, error) {
	x.Writer.Allowed, x.Writer.Confirm = x.Allowed, func(ctx context.Context, planned Result) (bool, error) {
		x.Meter.Stop()
		return x.Prompt.confirmLoss(ctx, planned)
	}
	x.tasks = append(x.tasks, tasks...)
	err := x.work(ctx)
	err = errors.Join(err, x.closeJournal(ctx.Err() != nil, err))
	if err != nil && x.NotTried != nil {
		for _, q := range x.tasks {
			if !q.reported {
				err = errors.Join(err, x.NotTried(&Result{Key: q.Key, Outcome: NotTried, Rules: q.Rules}))
			}
		}
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
	var broken error
	x.Meter.Start()
	defer x.Meter.Stop()
	x.Meter.Did("objects verified", 0, len(tasks))
	err := ForEach(len(tasks), x.Concurrency,
		func(i int) (*Verified, error) {
			return x.Verify(ctx, tasks[i], x.take(tasks[i]))
		},
		func(i int, v *Verified) (enough bool) {
			x.Meter.Did("objects verified", i+1, len(tasks))
			switch {
			case v == nil:
			case v.Outcome != Planned, x.IsDryRun():
				broken = errors.Join(x.recordUnwritten(tasks[i], v), x.report(tasks[i], &v.Result))
			default:
				tasks[i].verified = v
				ready = append(ready, tasks[i])
			}
			return broken != nil
		})
	return ready, errors.Join(err, broken)
}

// maxHeld is how many bytes the objects of one run take that are held until they are verified.
const maxHeld = 32 << 20

// Keep keeps a task that was made for a change until Run, and the object of that change until it is verified,
// so that it need not be read again. It is not safe for concurrent use.
func (x *Executor) Keep(t *Task, c *engine.Change) {
	x.hold(t, c.Target.Object)
	x.tasks = append(x.tasks, t)
}

// hold holds the object of a task as the run has listed it. What does not fit is not held.
func (x *Executor) hold(t *Task, listed *unstructured.Unstructured) {
	if t.mayUse(listed) && x.held < maxHeld {
		t.listed, _ = x.texts.Pack(listed.Object)
		x.held += len(t.listed)
	}
}

// take returns the object that is held for a task, which holds it no longer; nil if there is none.
func (x *Executor) take(t *Task) *unstructured.Unstructured {
	listed := t.listed
	if t.listed = ""; listed == "" {
		return nil
	}
	object, _ := x.texts.Unpack(listed).(map[string]any)
	return &unstructured.Unstructured{Object: object}
}

// Verify verifies the change of a task, as Run does before it writes. The object is read, unless it is known
// as it was listed. It is safe for concurrent use, with different tasks. What is wrong with the change is the
// outcome of the result; the error is one of Writer.Verify.
func (x *Executor) Verify(ctx context.Context, t *Task,
	listed *unstructured.Unstructured,
) (*Verified, error) {
	if !t.mayUse(listed) {
		listed = nil
	}
	v, err := x.Writer.VerifyListed(t.under(ctx), t.Key, listed, x.want(t))
	if err != nil {
		return nil, err
	}
	x.inspect(v)
	v.Touched, v.Secrets = v.Touched.Sharing(t.Entry.Partial), t.secrets()
	return v, nil
}

// inspect looks at the objects of a verification and releases them: a run over ten
// thousand objects cannot keep them.
func (x *Executor) inspect(v *Verified) {
	v.Version = v.ResourceVersion
	if s := v.status; s != nil && v.Outcome == Planned && s.Err != nil {
		v.Outcome, v.Err = s.Outcome, s.Err // an object is written in both parts, or not at all
	}
	if v.Outcome == Failed {
		v.Instead = impact.Workload(v.Before)
	}
	if !x.IsDryRun() {
		v.Before, v.After = nil, nil
		if v.status != nil {
			v.status.Before, v.status.After = nil, nil
		}
	}
}

// report counts and shows the result of one object.
func (x *Executor) report(t *Task, r *Result) error {
	r.Rules, r.Autoscaled, t.reported = t.Rules, t.Autoscaled, true
	t.missed = r.misses() || r.Status != nil && r.Status.misses()
	r.Secrets = t.secrets()
	if managed := (*ManagedError)(nil); errors.As(r.Err, &managed) {
		for i := range t.impacts {
			if t.impacts[i].Owner == managed.By {
				managed.Source = cmp.Or(t.impacts[i].Source, managed.Source)
			}
		}
	}
	x.tally.add(r, t.managed)
	var drift *plan.Drift
	if errors.As(r.Err, &drift) && x.ShowDrift != nil {
		if err := x.ShowDrift(drift); err != nil {
			return err
		}
	}
	if x.OnResult != nil {
		x.OnResult(t, r)
	}
	t.verified = nil // which nothing needs any more
	return x.Report(r)
}

// ForEach calls do for every number below n, with a number of workers, and passes each
// result to take: one after the other and in order. When take returns that it is
// enough, or do fails, no further number is started; those that were started are
// finished and passed on. So take always gets the first numbers, without a gap.
//
// A cancelled context does not stop it; do has to.
func ForEach[R any](n, workers int, do func(i int) (R, error), take func(i int, r R) (enough bool)) error {
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
					if taken++; take(taken-1, r) {
						n = 0
					}
				}
			}
		})
	}
	group.Wait()
	return failed
}

// arrange brings the tasks that are ready into the order in which they are written: an object whose state
// triggers the changes of others comes after these, since a run that is interrupted and resumed would not
// find what triggered them. In a circle no order is better than another.
func (x *Executor) arrange(ready []*Task) {
	x.triggeredBy = map[engine.ObjectKey][]*Task{}
	for _, t := range x.tasks {
		for _, s := range t.Entry.Steps {
			if s.Outcome == engine.Changed && s.Trigger != (engine.ObjectKey{}) && s.Trigger.Named() != t.Key.Named() {
				x.triggeredBy[s.Trigger.Named()] = append(x.triggeredBy[s.Trigger.Named()], t)
			}
		}
	}
	waves := map[*Task]int{}
	for _, t := range ready {
		t.wave = x.wave(t, waves)
	}
	slices.SortStableFunc(ready, func(a, b *Task) int { return cmp.Compare(a.wave, b.wave) })
}

// wave is 0 for a task that triggers no other one, and else later than all that it triggers. Known are those
// of other tasks.
func (x *Executor) wave(t *Task, known map[*Task]int) int {
	if wave, ok := known[t]; ok {
		return wave
	}
	known[t] = 0 // in a circle
	after := 0
	for _, other := range x.triggeredBy[t.Key.Named()] {
		after = max(after, x.wave(other, known)+1)
	}
	known[t] = after
	return after
}

// missedTarget returns a task whose change the object triggers, and that was not made; nil if there is none.
func (x *Executor) missedTarget(t *Task) *Task {
	triggers := x.triggeredBy[t.Key.Named()]
	if i := slices.IndexFunc(triggers, func(other *Task) bool {
		return other.wave < t.wave && other.missed
	}); i >= 0 {
		return triggers[i]
	}
	return nil
}

// batches divides arranged tasks into those that are written together, at most size of them.
func batches(tasks []*Task, size int) [][]*Task {
	var out [][]*Task
	for len(tasks) > 0 {
		n := slices.IndexFunc(tasks, func(t *Task) bool { return t.wave != tasks[0].wave })
		if n < 0 {
			n = len(tasks)
		}
		n = min(n, size)
		out, tasks = append(out, tasks[:n:n]), tasks[n:]
	}
	return out
}
