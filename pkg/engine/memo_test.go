package engine_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
)

func TestMemoGetsOnceForAllWhoAsk(t *testing.T) {
	var m engine.Memo
	var calls atomic.Int32
	release := make(chan struct{})
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			value, err := m.Do(t.Context(), "key", func(context.Context) (any, error) {
				calls.Add(1)
				<-release
				return 42, nil
			})
			if value != 42 || err != nil {
				t.Errorf("got %v, %v", value, err)
			}
		})
	}
	close(release)
	wg.Wait()
	if calls.Load() != 1 {
		t.Errorf("got the value %d times, want once", calls.Load())
	}
}

func TestMemoKeepsErrorsButNotThoseOfACancelledRun(t *testing.T) {
	var m engine.Memo
	calls := 0
	fail := func(context.Context) (any, error) { calls++; return nil, errors.New("not found") }
	for range 2 {
		if _, err := m.Do(t.Context(), "absent", fail); err == nil {
			t.Error("the error is lost")
		}
	}
	if calls != 1 {
		t.Errorf("asked %d times, want once", calls)
	}
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := m.Do(cancelled, "key", fail); err == nil {
		t.Error("the error is lost")
	}
	if value, err := m.Do(t.Context(), "key", func(context.Context) (any, error) { return 1, nil }); value != 1 || err != nil {
		t.Errorf("after a cancelled run: %v, %v", value, err)
	}
}

func TestMemoOfAPanic(t *testing.T) {
	var m engine.Memo
	for range 2 {
		var p *engine.PanicError
		if value, err := m.Do(t.Context(), "key", func(context.Context) (any, error) { panic("index out of range") }); value != nil || !errors.As(err, &p) {
			t.Errorf("got %v, %v", value, err)
		}
	}
}
