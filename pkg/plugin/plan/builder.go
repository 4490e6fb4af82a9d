package plan

import (
	"context"
	"fmt"
	"runtime"
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/evaluation"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/apply/request"
)

// Server is what a Builder needs to know how a change would be sent.
type Server interface {
	// Types knows the schema of a kind; nil where the server publishes none.
	Types(ctx context.Context, gvk schema.GroupVersionKind, refresh bool) (managedfields.TypeConverter, error)
	// HasStatus reports whether a kind has a /status endpoint.
	HasStatus(ctx context.Context, gvk schema.GroupVersionKind) (bool, error)
}

// Builder makes a plan of what a preview finds. It is not safe for concurrent use.
type Builder struct {
	run     Run
	entries Entries
	waiting []*building // for what is still worked out of them, or of one before them
	server  Server
	manager string

	// How each change would be sent is worked out beside the evaluation, for no
	// more objects at once than there are slots.
	slots chan struct{}
	group sync.WaitGroup
	mu    sync.Mutex
	err   error // the first one
}

// building is an entry of which is worked out how it would be sent, until that is done.
type building struct {
	Entry
	done chan struct{}
}

// NewBuilder begins the plan of a run that is about to be evaluated. Manager is the
// field manager that would write the changes.
func NewBuilder(run Run, server Server, manager string) *Builder {
	return &Builder{run: run, server: server, manager: manager, slots: make(chan struct{}, runtime.GOMAXPROCS(0))}
}

// Add records an object that would change, or about which there is something else to
// report.
func (b *Builder) Add(ctx context.Context, c *engine.Change) error {
	e := &building{NewEntry(c), make(chan struct{})}
	if len(e.Fields) == 0 && len(e.Steps) == 0 {
		return nil
	}
	if b.waiting = append(b.waiting, e); e.Writes() {
		b.slots <- struct{}{}
		b.group.Go(func() {
			_ = b.failed(b.method(ctx, c, &e.Entry)) // returned by the next call
			close(e.done)
			<-b.slots
		})
	} else {
		close(e.done)
	}
	b.take()
	return b.failed(nil)
}

// take takes the entries that are done, in their order.
func (b *Builder) take() {
	for len(b.waiting) > 0 {
		select {
		case <-b.waiting[0].done:
			b.entries.Add(&b.waiting[0].Entry)
			b.waiting = b.waiting[1:]
		default:
			return
		}
	}
}

// failed notes an error, and returns the first one that was noted.
func (b *Builder) failed(err error) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.err == nil {
		b.err = err
	}
	return b.err
}

// method sets how a change would be sent.
func (b *Builder) method(ctx context.Context, c *engine.Change, e *Entry) error {
	request, cannot, err := b.request(ctx, c)
	switch {
	case err != nil:
		return fmt.Errorf("%s: %w", c.Subject, err)
	case cannot != nil:
		e.MethodReason = cannot.Error()
	default:
		e.Method, e.MethodReason = request.Method, request.Reason.String()
	}
	return nil
}

// request is the first one that would be sent: the one for the object, or that
// for its status where nothing else changes. Cannot says why there can be none.
func (b *Builder) request(ctx context.Context, c *engine.Change) (r request.Request, cannot, err error) {
	gvk := c.Before.GroupVersionKind()
	in := request.Input{
		Live: c.Before, After: c.After, Subresource: c.Subject.Subresource, Manager: b.manager,
	}
	if in.Types, err = b.server.Types(ctx, gvk, false); err != nil {
		return r, nil, err
	}
	hasStatus, err := b.server.HasStatus(ctx, gvk)
	if err != nil {
		return r, nil, err
	}
	object, status := request.SplitStatus(c.Before, c.After)
	if hasStatus && in.Subresource == "" && status != nil {
		in.After = object
		if r, cannot = request.Plan(in); cannot != nil || r.Method != request.None {
			return r, cannot, nil
		}
		in.After, in.Subresource = status, request.StatusSubresource
	}
	r, cannot = request.Plan(in)
	return r, cannot, nil
}

// Close frees what the entries take, those of the plan too.
func (b *Builder) Close() error {
	b.group.Wait()
	return b.entries.Close()
}

// Plan returns the plan of a preview that has ended. The error is that of a request to
// the server.
func (b *Builder) Plan(summary evaluation.Summary, incomplete bool) (*Plan, error) {
	b.group.Wait()
	if err := b.failed(nil); err != nil {
		return nil, err
	}
	b.take()
	return &Plan{Run: b.run, Summary: summary, Incomplete: incomplete, Entries: &b.entries}, nil
}
