package apply

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/interrupt"
)

// untilSecondInterrupt returns a context for requests in flight. An interrupt cancels
// ctx, and only a second one the returned context. Call end when nothing is in flight.
func untilSecondInterrupt(ctx context.Context, errOut io.Writer) (hard context.Context, end func()) {
	second, release := interrupt.Hold(ctx)
	hard, cancel := context.WithCancel(context.WithoutCancel(ctx))
	go func() {
		select {
		case <-hard.Done():
			return
		case <-ctx.Done():
		}
		fmt.Fprintln(errOut, "Interrupted: waiting for the requests in flight. Interrupt again to stop at once.")
		select {
		case <-hard.Done():
		case <-second:
			cancel()
		}
	}()
	return hard, func() {
		cancel()
		release()
	}
}

// sleep returns early with the context's error if that ends.
func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}
