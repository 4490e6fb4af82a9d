package evaluation

import (
	"context"
	"iter"
	"sync"
	"sync/atomic"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
)

// pages streams a source, less the parts that cannot be read.
func (e *Evaluation) pages(ctx context.Context, src engine.Source, selections []engine.Selection) iter.Seq2[engine.Page, error] {
	return func(yield func(engine.Page, error) bool) {
		for page, err := range src.Pages(ctx, selections) {
			if err != nil && e.isUnreadable(err) {
				continue
			}
			if !yield(page, err) {
				return
			}
		}
	}
}

// job is what to do with every target of a source: do runs side by side, take
// receives the results one after the other, in the order of the source. Between these, the results of a
// page go through note in their order, and then through review side by side; both are nil or neither.
// A page whose results have a weight beyond maxWeight is worked through in parts; without weight, they have none.
type job[R any] struct {
	workers int
	do      func(context.Context, engine.Target) (R, error)
	weight  func(R) int
	note    func(R)
	review  func(context.Context, R) error
	take    func(R) error
}

// maxWeight is how many bytes results keep for changed fields before they are taken and no more objects are evaluated: that of some
// 100,000 small fields.
const maxWeight = 32 << 20

// fieldSize is what is assumed of a changed field beside its values.
const fieldSize = 200

// weight estimates how many bytes a change keeps for its fields.
func weight(c *engine.Change) int {
	size := weightOf(c.Fields)
	for i := range c.Steps {
		size += weightOf(c.Steps[i].Fields)
	}
	return size
}

func weightOf(fields []engine.FieldChange) int {
	size := 0
	for i := range fields {
		size += fieldSize + engine.SizeOf(fields[i].From) + engine.SizeOf(fields[i].To)
	}
	return size
}

// run works through the pages, one at a time. The first error ends it.
func (j job[R]) run(ctx context.Context, pages iter.Seq2[engine.Page, error]) error {
	for page, err := range pages {
		if err != nil {
			return err
		}
		for from := 0; from < page.Len(); {
			results, err := j.onPage(ctx, page, from)
			if err != nil {
				return err
			}
			for _, r := range results {
				if err := j.take(r); err != nil {
					return err
				}
			}
			from += len(results)
		}
	}
	return ctx.Err()
}

// onPage returns the results of the next targets of a page: of all that are left, or of as many as have maxWeight.
func (j job[R]) onPage(ctx context.Context, page engine.Page, from int) ([]R, error) {
	results := make([]R, page.Len()-from)
	var kept atomic.Int64
	n, err := sideBySide(ctx, j.workers, len(results), func(ctx context.Context, i int) (enough bool, err error) {
		t, err := page.Target(from + i)
		if err == nil {
			results[i], err = j.do(ctx, t)
		}
		return err == nil && j.weight != nil && kept.Add(int64(j.weight(results[i]))) >= maxWeight, err
	})
	results = results[:n]
	if err != nil || j.review == nil {
		return results, err
	}
	for _, r := range results {
		j.note(r)
	}
	_, err = sideBySide(ctx, j.workers, len(results), func(ctx context.Context, i int) (bool, error) { return false, j.review(ctx, results[i]) })
	return results, err
}

// sideBySide does something for each number below n, or for the first ones until it is enough, and returns for how many. The first
// error ends it.
func sideBySide(ctx context.Context, workers, n int, do func(context.Context, int) (enough bool, err error)) (int, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var next atomic.Int64
	var ended atomic.Bool
	var group sync.WaitGroup
	for range min(workers, n) {
		group.Go(func() {
			for ctx.Err() == nil && !ended.Load() {
				i := int(next.Add(1)) - 1
				if i >= n {
					return
				}
				enough, err := do(ctx, i)
				if err != nil {
					cancel(err)
					return
				}
				if enough {
					ended.Store(true)
				}
			}
		})
	}
	group.Wait()
	return min(int(next.Load()), n), context.Cause(ctx)
}
