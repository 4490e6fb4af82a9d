package evaluation

import (
	"context"
	"iter"
	"sync/atomic"

	"golang.org/x/sync/errgroup"

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
type job[R any] struct {
	workers int
	do      func(context.Context, engine.Target) (R, error)
	note    func(R)
	review  func(context.Context, R) error
	take    func(R) error
}

// run works through the pages, one at a time. The first error ends it.
func (j job[R]) run(ctx context.Context, pages iter.Seq2[engine.Page, error]) error {
	for page, err := range pages {
		if err != nil {
			return err
		}
		results, err := j.onPage(ctx, page)
		if err != nil {
			return err
		}
		for _, r := range results {
			if err := j.take(r); err != nil {
				return err
			}
		}
	}
	return ctx.Err()
}

// onPage returns the results of the targets of a page.
func (j job[R]) onPage(ctx context.Context, page engine.Page) ([]R, error) {
	results := make([]R, page.Len())
	err := sideBySide(ctx, j.workers, len(results), func(ctx context.Context, i int) error {
		t, err := page.Target(i)
		if err == nil {
			results[i], err = j.do(ctx, t)
		}
		return err
	})
	if err != nil || j.review == nil {
		return results, err
	}
	for _, r := range results {
		j.note(r)
	}
	return results, sideBySide(ctx, j.workers, len(results), func(ctx context.Context, i int) error { return j.review(ctx, results[i]) })
}

// sideBySide does something for each number below n. The first error ends it.
func sideBySide(ctx context.Context, workers, n int, do func(context.Context, int) error) error {
	group, inner := errgroup.WithContext(ctx)
	var next atomic.Int64
	for range min(workers, n) {
		group.Go(func() error {
			for i := next.Add(1); i <= int64(n) && inner.Err() == nil; i = next.Add(1) {
				if err := do(inner, int(i-1)); err != nil {
					return err
				}
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	return context.Cause(ctx)
}
