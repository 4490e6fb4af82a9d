package journal

import (
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/write/plan"
)

// slowFile is a disk that takes its time to sync, and may fail.
type slowFile struct {
	syncs  atomic.Int64
	writes atomic.Int64
	fail   error
}

func (f *slowFile) Write(p []byte) (int, error) { f.writes.Add(1); return len(p), f.fail }
func (f *slowFile) Close() error                { return nil }
func (f *slowFile) Sync() error {
	time.Sleep(10 * time.Millisecond)
	f.syncs.Add(1)
	return f.fail
}

func TestWriterSharesTheWaitForTheDisk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &slowFile{}
		w := newWriter("j", f)
		const workers, each = 8, 50
		began := time.Now()
		var group sync.WaitGroup
		for range workers {
			group.Go(func() {
				for range each {
					if err := w.appendDurable(record{Resumed: &Resumed{}}); err != nil {
						t.Error(err)
					}
				}
			})
		}
		group.Wait()
		// One may have to wait for the sync that is under way, and then for its own.
		if took, syncs := time.Since(began), f.syncs.Load(); syncs > 2*each || took > 2*each*10*time.Millisecond {
			t.Errorf("%d records took %d syncs and %s", workers*each, syncs, took)
		}
		if w.durable != workers*each {
			t.Errorf("%d of %d are durable", w.durable, workers*each)
		}
	})
}

// While a request is under way, attempts wait for each other; a run that sends one request at a time waits
// for none.
func TestWriterGathersAttempts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &slowFile{}
		w := newWriter("j", f)
		for range 5 {
			if err := w.Plan(&plan.Entry{}); err != nil {
				t.Fatal(err)
			}
		}
		attempt := func(entry int) {
			if err := w.Attempt(Attempt{Entry: entry}); err != nil {
				t.Error(err)
			}
		}
		began := time.Now()
		for entry := range 2 {
			attempt(entry)
			if err := w.Result(Result{Entry: entry}); err != nil {
				t.Error(err)
			}
		}
		if took := time.Since(began); took != 20*time.Millisecond || f.syncs.Load() != 2 {
			t.Errorf("one after the other: %d syncs, %s", f.syncs.Load(), took)
		}
		attempt(2)
		f.syncs.Store(0)
		began = time.Now()
		var group sync.WaitGroup
		for entry := range 2 {
			group.Go(func() {
				time.Sleep(time.Duration(entry) * gather / 2)
				attempt(3 + entry)
			})
		}
		group.Wait()
		if took := time.Since(began); took != gather+10*time.Millisecond || f.syncs.Load() != 1 {
			t.Errorf("beside one under way: %d syncs, %s", f.syncs.Load(), took)
		}
	})
}

func TestWriterRecordsNothingAfterAnError(t *testing.T) {
	full := errors.New("no space left on device")
	f := &slowFile{fail: full}
	w := newWriter("j", f)
	for range 2 {
		var broken *Error
		if err := w.appendDurable(record{Resumed: &Resumed{}}); !errors.As(err, &broken) || !errors.Is(err, full) {
			t.Errorf("got %v", err)
		}
		f.fail = nil
	}
	if f.writes.Load() != 1 {
		t.Errorf("%d writes", f.writes.Load())
	}
}
