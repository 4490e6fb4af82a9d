package progress_test

import (
	"bytes"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/progress"
)

// screen is a writer that may be read while it is written to.
type screen struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (s *screen) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.Write(p)
}

func (s *screen) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.String()
}

// watch is a clock whose ticks are taken before step returns.
type watch struct {
	*clocktesting.FakeClock
	ticks chan time.Time
}

func newWatch() *watch {
	return &watch{clocktesting.NewFakeClock(time.Unix(0, 0)), make(chan time.Time)}
}

func (w *watch) NewTicker(time.Duration) clock.Ticker { return w }
func (w *watch) C() <-chan time.Time                  { return w.ticks }
func (w *watch) Stop()                                {}

// step lets time pass and has the meter draw. A tick is taken only when the one
// before it has been drawn.
func (w *watch) step(d time.Duration) {
	w.FakeClock.Step(d)
	w.ticks <- w.Now()
}

// next is what the next tick has the meter write.
func (w *watch) next(t *testing.T, out *screen) string {
	t.Helper()
	before := len(out.String())
	w.step(0)
	for range 1000 {
		if text := out.String()[before:]; text != "" {
			return text
		}
		time.Sleep(time.Millisecond)
	}
	t.Fatal("nothing is written")
	return ""
}

func begin(t *testing.T, terminal bool) (*progress.Meter, *watch, *screen) {
	t.Helper()
	out, w := &screen{}, newWatch()
	m := progress.New(progress.Options{Out: out, Terminal: terminal, Clock: w})
	m.Start()
	return m, w, out
}

func TestMeterLine(t *testing.T) {
	m, w, out := begin(t, false)
	m.Listed("pods", 500, 9500)
	w.FakeClock.Step(5 * time.Second)
	m.Listed("pods", 5500, 4500)
	for range 1234 {
		m.Evaluated()
	}
	for range 8 { // requests at the same time
		m.Waiting(time.Unix(1, 0), time.Unix(2, 0))
	}
	m.Waiting(time.Unix(4, 0), time.Unix(60, 0)) // which goes on
	want := "progress: pods: 5,500 of 10,000 read, about 5s left, waited 2s for request limits, read at 1,000/s, 1,234 objects evaluated at 246/s\n"
	if got := w.next(t, out); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	m.Stop()
}

func TestMeterDid(t *testing.T) {
	m, w, out := begin(t, false)
	m.Listed("pods", 500, 9500)
	m.Evaluated()
	m.Did("objects verified", 1, 1501)
	w.FakeClock.Step(progress.Early)
	m.Did("objects verified", 501, 1501)
	m.Listed("pods", 2, 0) // for one of them
	if got, want := w.next(t, out), "progress: 501 of 1,501 objects verified, about 10s left, verified at 100/s\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	m.Stop()
}

// Where there is no terminal, the first line comes early, and the others at growing intervals.
func TestMeterIntervals(t *testing.T) {
	m, w, out := begin(t, false)
	m.Listed("pods", 1, -1)
	for range 100 {
		w.step(time.Second)
	}
	w.step(0) // taken when the one before it has been drawn
	m.Stop()
	if got, want := strings.Count(out.String(), "\n"), 5; got != want { // after 5, 15, 35, 65 and 95 seconds
		t.Errorf("%d lines in 100 seconds, want %d:\n%s", got, want, out)
	}
}

func TestMeterBeside(t *testing.T) {
	m, w, out := begin(t, true)
	m.Listed("pods", 5, 5)
	w.FakeClock.Step(2 * time.Second)
	w.next(t, out)
	if _, err := m.Beside(out).Write([]byte("result\n")); err != nil {
		t.Fatal(err)
	}
	got := out.String()
	if !strings.HasPrefix(got, "\rpods: 5 of 10 read\x1b[K") || !strings.Contains(got, "\r\x1b[Kresult\n") {
		t.Errorf("got %q", got)
	}
	m.Stop()
	if got := out.String(); !strings.HasSuffix(got, "\n") && !strings.HasSuffix(got, "\r\x1b[K") {
		t.Errorf("the line is left behind: %q", got)
	}
}

func TestMeterWidth(t *testing.T) {
	out, w := &screen{}, newWatch()
	m := progress.New(progress.Options{Out: out, Terminal: true, Clock: w, Width: func() int { return 12 }})
	m.Start()
	m.Listed("pods\x1b[2J\n", 5, 5)
	w.FakeClock.Step(2 * time.Second)
	if got, want := w.next(t, out), "\rpods?[2J?: \x1b[K"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	m.Stop()
}
