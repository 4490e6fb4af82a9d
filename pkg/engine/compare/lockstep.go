package compare

import (
	"context"
	"iter"
	"slices"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
)

// Run compares the sides on every object of a source, and then on objects that rules change but the source
// lacks. It reads the source once, and emits each Result as soon as all lanes are done with its page. An
// error of emit ends the run.
func (c *Comparison) Run(ctx context.Context, src engine.Source, emit func(*Result) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	m := &merger{comparison: c, ctx: ctx, emit: emit}
	runners := make([]*runner, len(c.lanes))
	for i, l := range c.lanes {
		runners[i] = start(ctx, l)
		defer runners[i].stop()
		if err := runners[i].advance(nil); err != nil {
			return err
		}
	}
	for page, err := range src.Pages(ctx, c.selections) {
		for i, r := range runners {
			r.page, r.err = page, err
			if err := r.advance(func(change *engine.Change) { m.add(i, change) }); err != nil {
				return err
			}
		}
		if err := m.flush(true); err != nil {
			return err
		}
	}
	return c.finish(runners, m)
}

// finish advances the lanes in turn through the objects that the source lacks, so that few results are held.
func (c *Comparison) finish(runners []*runner, m *merger) error {
	for _, r := range runners {
		r.ended = true
	}
	for left := len(runners); left > 0; {
		left = 0
		for i, r := range runners {
			change, err := r.next()
			if err != nil {
				return err
			}
			if change != nil {
				m.add(i, change)
				left++
			}
		}
		if err := m.flush(false); err != nil {
			return err
		}
	}
	return m.flush(true)
}

// runner is a lane's run, suspended whenever it needs a page or has a result.
type runner struct {
	lane  *lane
	pull  func() (event, bool)
	stop  func()
	page  engine.Page
	err   error // of the source, instead of a page
	ended bool  // the source has no more pages
}

// event suspends a run: it needs a page, has a change, or ends with an error.
type event struct {
	change *engine.Change
	wants  bool
	err    error
}

func start(ctx context.Context, l *lane) *runner {
	r := &runner{lane: l}
	r.pull, r.stop = iter.Pull(func(yield func(event) bool) {
		err := l.evaluation.Run(ctx, fedSource{r, yield}, func(change *engine.Change) error {
			if !yield(event{change: change}) {
				return context.Canceled
			}
			return nil
		})
		if err != nil {
			yield(event{err: err})
		}
	})
	return r
}

type fedSource struct {
	runner *runner
	yield  func(event) bool
}

// Pages implements engine.Source.
func (s fedSource) Pages(context.Context, []engine.Selection) iter.Seq2[engine.Page, error] {
	return func(yield func(engine.Page, error) bool) {
		for s.yield(event{wants: true}) && !s.runner.ended {
			page := s.runner.page
			if page != nil {
				page = engine.AlteredPage{Page: page, Alter: s.runner.lane.target}
			}
			if !yield(page, s.runner.err) {
				return
			}
		}
	}
}

// next returns the next change of a run whose source has ended, or nil.
func (r *runner) next() (*engine.Change, error) {
	for {
		e, ok := r.pull()
		if !ok || e.err != nil || e.change != nil {
			return e.change, e.err
		}
	}
}

// advance resumes a run until it needs a page, and takes the changes of the previous page.
func (r *runner) advance(take func(*engine.Change)) error {
	for {
		e, ok := r.pull()
		switch {
		case !ok, e.wants:
			return nil
		case e.err != nil:
			return e.err
		case e.change != nil:
			take(e.change)
		}
	}
}

// merger joins the lanes' changes by object, in the order of the first lane that reports each.
type merger struct {
	comparison *Comparison
	ctx        context.Context // of a single run
	emit       func(*Result) error
	order      []engine.ObjectKey
	held       map[engine.ObjectKey][]*engine.Change // by lane
}

func (m *merger) add(lane int, c *engine.Change) {
	key := c.Subject.Named()
	if m.held == nil {
		m.held = map[engine.ObjectKey][]*engine.Change{}
	}
	if m.held[key] == nil {
		m.held[key] = make([]*engine.Change, len(m.comparison.lanes))
		m.order = append(m.order, key)
	}
	m.held[key][lane] = c
}

// flush emits the held changes: all of them, or those that every lane has reported.
func (m *merger) flush(all bool) error {
	var waiting []engine.ObjectKey
	for _, key := range m.order {
		if !all && slices.Contains(m.held[key], nil) {
			waiting = append(waiting, key)
			continue
		}
		result := m.comparison.judge(m.ctx, m.held[key])
		delete(m.held, key)
		if err := m.emit(result); err != nil {
			return err
		}
	}
	m.order = waiting
	return m.ctx.Err()
}
