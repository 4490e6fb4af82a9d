package wording

import (
	"cmp"
	"io"
	"math"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

// When a Meter writes. A shorter run shows no progress.
const (
	Patience = time.Second            // before the first line on a terminal
	Refresh  = 200 * time.Millisecond // of the line on a terminal
	Early    = 5 * time.Second        // before the first line elsewhere; then twice as long each time,
	Interval = 30 * time.Second       // up to this
)

// MeterOptions tune a Meter.
type MeterOptions struct {
	Out io.Writer // standard error
	// Terminal says that Out is a terminal: a single line is then rewritten.
	Terminal bool
	// Width returns the current number of columns of the terminal; nil stands for 80.
	Width func() int
	// Offline says that no server is involved.
	Offline bool
}

// Meter counts what a run does and shows it from time to time. All methods are safe for
// concurrent use, and do nothing on a nil Meter.
type Meter struct {
	options MeterOptions

	mu    sync.Mutex
	begun time.Time
	state state
	due   time.Time // of the next line, where Out is not a terminal
	pause time.Duration
	drawn bool   // the line is on the terminal
	end   func() // stops drawing; nil where nothing is drawn
}

// NewMeter returns a Meter that has not started.
func NewMeter(o MeterOptions) *Meter {
	if o.Width == nil {
		o.Width = func() int { return 80 }
	}
	return &Meter{options: o}
}

// Start shows progress until Stop.
func (m *Meter) Start() {
	if m == nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.end != nil {
		return
	}
	m.begun, m.state = time.Now(), state{offline: m.options.Offline}
	every := Early
	m.due, m.pause = m.begun.Add(Early), Early
	if m.options.Terminal {
		every = Refresh
	}
	var drawing sync.WaitGroup
	stopped := make(chan struct{})
	drawing.Go(func() { wait.Until(m.draw, every, stopped) })
	m.end = func() { close(stopped); drawing.Wait() }
}

// Stop stops showing progress, and clears the line.
func (m *Meter) Stop() {
	if m == nil {
		return
	}
	m.mu.Lock()
	end := m.end
	m.end = nil
	m.clear()
	m.mu.Unlock()
	if end != nil {
		end()
	}
}

// Listed sets how many objects of a resource have been read, and how many are left; negative if the server
// does not say. It has no effect while Did counts.
func (m *Meter) Listed(resource string, seen int, left int64) {
	m.update(func(s *state) {
		if s.done != "" {
			return
		}
		if resource != s.resource || seen < s.seen {
			s.since, s.first = time.Now(), seen
		}
		s.resource, s.seen, s.left = resource, seen, left
	})
}

// Evaluated counts one more evaluated object.
func (m *Meter) Evaluated() { m.update(func(s *state) { s.evaluated++ }) }

// Did sets how many things of a number are done, such as "objects verified", and replaces what was shown
// before.
func (m *Meter) Did(what string, done, of int) {
	m.update(func(s *state) {
		if s.done != what {
			*s = state{done: what, since: time.Now(), first: done}
		}
		s.seen, s.left, s.waitingFor = done, int64(of-done), ""
	})
}

// WaitingFor sets what the run waits for until it makes progress.
func (m *Meter) WaitingFor(what string) { m.update(func(s *state) { s.waitingFor = what }) }

// Waiting notes that a request waits from one time to another for a limit of this program or of the server.
// Overlapping waits count once.
func (m *Meter) Waiting(from, to time.Time) {
	m.update(func(s *state) {
		if from.Before(s.waitedTo) {
			from = s.waitedTo
		}
		if to.After(from) {
			s.waited += to.Sub(from)
			s.waitedTo = to
		}
	})
}

func (m *Meter) update(state func(*state)) {
	if m == nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	state(&m.state)
}

func (m *Meter) draw() {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := time.Now()
	if m.end == nil || now.Sub(m.begun) < Patience {
		return
	}
	// Progress that cannot be written does not end a run.
	if !m.options.Terminal {
		if now.Before(m.due) {
			return
		}
		m.pause = min(2*m.pause, Interval)
		m.due = now.Add(m.pause)
		_, _ = io.WriteString(m.options.Out, "progress: "+m.state.line(now, now.Sub(m.begun), math.MaxInt)+"\n")
		return
	}
	room := max(m.options.Width()-1, 0) // a line that wraps could not be cleared
	_, _ = io.WriteString(m.options.Out, "\r"+m.state.line(now, now.Sub(m.begun), room)+clearToEnd)
	m.drawn = true
}

const clearToEnd = "\x1b[K"

func (m *Meter) clear() {
	if m.drawn {
		_, _ = io.WriteString(m.options.Out, "\r"+clearToEnd)
		m.drawn = false
	}
}

// Beside returns a writer to the same terminal, which clears the line before each write.
func (m *Meter) Beside(w io.Writer) io.Writer {
	if m == nil || !m.options.Terminal {
		return w
	}
	return beside{m, w}
}

type beside struct {
	meter *Meter
	io.Writer
}

// Write implements io.Writer.
func (b beside) Write(p []byte) (int, error) {
	b.meter.mu.Lock()
	defer b.meter.mu.Unlock()
	b.meter.clear()
	return b.Writer.Write(p)
}

// state is how far a run has come.
type state struct {
	offline  bool
	resource string // that is being read
	// what is counted, such as "objects verified"; empty while objects are read
	done        string
	since       time.Time // the first page of it
	first, seen int       // objects of it by then, and by now
	left        int64
	evaluated   int
	waitingFor  string        // may be empty
	waited      time.Duration // by at least one request, until waitedTo
	waitedTo    time.Time
}

// line returns the progress, such as "pods: 1,500 of 10,000 read, about 9s left, read at 900/s, 1,000
// objects evaluated at 800/s", without the last parts if these do not fit into the columns.
func (s *state) line(now time.Time, elapsed time.Duration, columns int) string {
	var line string
	for _, part := range s.parts(now, elapsed) {
		part = strings.Map(toPrintable, part)
		switch {
		case line == "":
			line = part[:min(len(part), columns)]
		case len(line)+len(", ")+len(part) <= columns:
			line += ", " + part
		default:
			return line
		}
	}
	return line
}

// parts returns the parts of the line, the most important first.
func (s *state) parts(now time.Time, elapsed time.Duration) []string {
	var parts []string
	switch {
	case s.done != "":
		parts = append(parts, Number(s.seen)+" of "+Number(s.seen+int(s.left))+" "+s.done)
	case s.resource == "" && s.evaluated == 0 && s.offline:
		parts = append(parts, "no object evaluated yet")
	case s.resource == "" && s.evaluated == 0:
		parts = append(parts, "waiting for the server")
	case s.resource == "":
	case s.left >= 0:
		parts = append(parts, s.resource+": "+Number(s.seen)+" of "+Number(s.seen+int(s.left))+" read")
	default:
		parts = append(parts, s.resource+": "+Number(s.seen)+" read")
	}
	if s.waitingFor != "" {
		parts = append(parts, "waiting for "+s.waitingFor)
	}
	perSecond := rate(s.seen-s.first, now.Sub(s.since))
	if perSecond >= 1 && s.left > 0 && s.waitingFor == "" {
		parts = append(parts, "about "+round(time.Duration(float64(s.left)/perSecond*float64(time.Second)))+" left")
	}
	if waited := s.waited - max(0, s.waitedTo.Sub(now)); waited >= time.Second {
		parts = append(parts, "waited "+round(waited)+" for request limits")
	}
	if perSecond >= 1 && s.left != 0 && s.waitingFor == "" { // or else it is over, and the rate would sink
		parts = append(parts, cmp.Or(s.done[strings.LastIndexByte(s.done, ' ')+1:], "read")+rateText(perSecond))
	}
	if s.evaluated > 0 {
		parts = append(parts, Number(s.evaluated)+" objects evaluated"+rateText(rate(s.evaluated, elapsed)))
	}
	return parts
}

// toPrintable keeps the characters that a terminal shows in one column: names of resources come from
// servers.
func toPrintable(r rune) rune {
	if r < ' ' || r > '~' {
		return '?'
	}
	return r
}

func round(d time.Duration) string {
	return max(d.Round(time.Second), time.Second).String()
}

// rate returns how many there are per second; 0 if unknown.
func rate(n int, in time.Duration) float64 {
	if in <= 0 {
		return 0
	}
	return float64(n) / in.Seconds()
}

func rateText(perSecond float64) string {
	if perSecond < 1 {
		return ""
	}
	return " at " + Number(int(perSecond)) + "/s"
}
