package wording_test

import (
	"bytes"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/wording"
)

// metered runs with a meter that has begun at a time. To sleep is to let that time pass, and have the meter
// draw.
func metered(t *testing.T, o wording.MeterOptions, run func(m *wording.Meter, out *bytes.Buffer, begun time.Time)) {
	t.Helper()
	synctest.Test(t, func(*testing.T) {
		var out bytes.Buffer
		o.Out = &out
		m := wording.NewMeter(o)
		m.Start()
		defer m.Stop()
		run(m, &out, time.Now())
	})
}

func sleep(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

func TestMeterLine(t *testing.T) {
	metered(t, wording.MeterOptions{}, func(m *wording.Meter, out *bytes.Buffer, begun time.Time) {
		m.Listed("pods", 500, 9500)
		sleep(wording.Early - 1)
		m.Listed("pods", 5500, 4500)
		for range 1234 {
			m.Evaluated()
		}
		for range 8 { // requests at the same time
			m.Waiting(begun.Add(time.Second), begun.Add(2*time.Second))
		}
		m.Waiting(begun.Add(4*time.Second), begun.Add(time.Minute)) // which goes on
		sleep(1)
		want := "progress: pods: 5,500 of 10,000 read, about 5s left, waited 2s for request limits, read at 1,000/s, 1,234 objects evaluated at 246/s\n"
		if got := out.String(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	})
}

func TestMeterDid(t *testing.T) {
	metered(t, wording.MeterOptions{}, func(m *wording.Meter, out *bytes.Buffer, _ time.Time) {
		m.Listed("pods", 500, 9500)
		m.Evaluated()
		m.Did("objects verified", 1, 1501)
		sleep(wording.Early - 1)
		m.Did("objects verified", 501, 1501)
		m.Listed("pods", 2, 0) // for one of them
		sleep(1)
		want := "progress: 501 of 1,501 objects verified, about 10s left, verified at 100/s\n"
		m.WaitingFor("a, b")
		sleep(2 * wording.Early)
		want += "progress: 501 of 1,501 objects verified, waiting for a, b\n"
		if got := out.String(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	})
}

// Where there is no terminal, the first line comes early, and the others at growing intervals.
func TestMeterIntervals(t *testing.T) {
	metered(t, wording.MeterOptions{}, func(m *wording.Meter, out *bytes.Buffer, _ time.Time) {
		m.Listed("pods", 1, -1)
		sleep(100 * time.Second)
		if got, want := strings.Count(out.String(), "\n"), 5; got != want { // after 5, 15, 35, 65 and 95 seconds
			t.Errorf("%d lines in 100 seconds, want %d:\n%s", got, want, out)
		}
	})
}

func TestMeterBeside(t *testing.T) {
	metered(t, wording.MeterOptions{Terminal: true}, func(m *wording.Meter, out *bytes.Buffer, _ time.Time) {
		m.Listed("pods", 5, 5)
		sleep(2 * time.Second)
		if _, err := m.Beside(out).Write([]byte("result\n")); err != nil {
			t.Fatal(err)
		}
		got := out.String()
		if !strings.HasPrefix(got, "\rpods: 5 of 10 read\x1b[K") || !strings.HasSuffix(got, "\r\x1b[Kresult\n") {
			t.Errorf("got %q", got)
		}
		sleep(time.Second)
		m.Stop()
		if got := out.String(); !strings.HasSuffix(got, "\r\x1b[K") {
			t.Errorf("the line is left behind: %q", got)
		}
	})
}

func TestMeterWidth(t *testing.T) {
	metered(t, wording.MeterOptions{Terminal: true, Width: func() int { return 12 }}, func(m *wording.Meter, out *bytes.Buffer, _ time.Time) {
		m.Listed("pods\x1b[2J\n", 5, 5)
		sleep(2 * time.Second)
		if got, want := out.String(), "\rpods?[2J?: \x1b[K"; !strings.HasPrefix(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
	})
}
