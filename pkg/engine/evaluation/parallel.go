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

// eachPage does something with every target of the pages, side by side on one page. Take receives the results of a page in the order of
// the source. The first error ends it.
func eachPage[R any](
	ctx context.Context, workers int, pages iter.Seq2[engine.Page, error], do func(context.Context, engine.Target) (R, error), take func([]R) error,
) error {
	for page, err := range pages {
		if err != nil {
			return err
		}
		results := make([]R, page.Len())
		err = sideBySide(ctx, workers, len(results), func(ctx context.Context, i int) error {
			t, err := page.Target(i)
			if err == nil {
				results[i], err = do(ctx, t)
			}
			return err
		})
		if err != nil {
			return err
		}
		if err := take(results); err != nil {
			return err
		}
	}
	return ctx.Err()
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
