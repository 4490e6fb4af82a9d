package watch_test

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	apiwatch "k8s.io/apimachinery/pkg/watch"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/cluster"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/metrics"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/watch"
)

// hourEvents is how many changes an hour has, 28 a second.
const hourEvents = 100_000

// hour is a resource of which 500 objects live on, and others come and go.
type hour struct {
	script
	after func(events int)
}

func (h *hour) List(context.Context, func(cluster.RawItem) error) (string, error) { return "1", nil }

func (h *hour) Watch(_ context.Context, _ string, opened func(), each func(cluster.WatchEvent) error) error {
	opened()
	for i := range hourEvents {
		name, kind := fmt.Sprintf("stays%d", i%1000), apiwatch.Modified
		switch i % 4 {
		case 1:
			name, kind = fmt.Sprintf("goes%d", i), apiwatch.Added
		case 2:
			name, kind = fmt.Sprintf("goes%d", i-1), apiwatch.Deleted
		}
		if err := each(cluster.WatchEvent{Type: kind, Item: object(h.t, fmt.Sprintf("%s@%d=%0400d", name, i+2, i))}); err != nil {
			return err
		}
		h.after(i + 1)
	}
	h.done()
	return nil
}

// What is kept over an hour's worth of changes does not grow with their number. The heap after each tenth is in the log.
func TestHourIsFlat(t *testing.T) {
	ctx, end := context.WithCancel(t.Context())
	now := time.Now()
	var q watch.Queue
	own := watch.Settling{Now: func() time.Time { return now }}
	run := metrics.NewWatch("apply-existing", "v1", q.Len)
	h := &hour{script: script{t: t, done: end}}
	f := &watch.Follower{Resource: h, Emit: q.Put, Report: func(error) {}, Keeps: func(*cluster.RawItem) bool { return true }}
	h.after = func(n int) {
		now = now.Add(time.Hour / hourEvents)
		if n%100 == 0 {
			for _, e := range q.Take(100) {
				own.Pauses(e.Key, nil, []*watch.Event{e})
				own.Wrote(e.Key, fmt.Sprint(n))
				run.Event(e.Operation, e.Key.GroupKind)
			}
		}
		if n%(hourEvents/10) != 0 {
			return
		}
		var text strings.Builder
		if _, err := run.WriteTo(&text); err != nil {
			t.Fatal(err)
		}
		runtime.GC()
		var heap runtime.MemStats
		runtime.ReadMemStats(&heap)
		objects, states := f.Known()
		t.Logf("%d changes: heap %d KiB, %d objects, %d states, %d writes, %d lines of metrics", n, heap.HeapAlloc>>10, objects, states, own.Len(), strings.Count(text.String(), "\n"))
		if objects != 500 || states != 500 || q.Len() != 0 || own.Len() > 2*hourEvents/60+100 || strings.Count(text.String(), "\n") > 20 {
			t.Errorf("after %d changes: %d objects, %d states, %d events, %d writes are kept\n%s", n, objects, states, q.Len(), own.Len(), text.String())
		}
	}
	if err := begin(ctx, f); err != nil {
		t.Fatal(err)
	}
	if err := f.Run(ctx); err != nil {
		t.Fatal(err)
	}
}
