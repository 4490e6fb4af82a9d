package progress

import (
	"cmp"
	"strings"
	"time"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/wording"
)

// state is how far a run has come.
type state struct {
	offline     bool
	resource    string    // that is being read
	done        string    // what is done with things that are known, as in "objects verified"; empty while objects are read
	since       time.Time // the first page of it
	first, seen int       // objects of it by then, and by now
	left        int64
	evaluated   int
	waited      time.Duration // by at least one request, until waitedTo
	waitedTo    time.Time
}

// wait adds a time in which a request waits to that in which others do.
func (s *state) wait(from, to time.Time) {
	if from.Before(s.waitedTo) {
		from = s.waitedTo
	}
	if to.After(from) {
		s.waited += to.Sub(from)
		s.waitedTo = to
	}
}

// text returns the line, such as "pods: 1,500 of 10,000 read, about 9s left, read at 900/s,
// 1,000 objects evaluated at 800/s", the most important first. It leaves out the last parts, so
// that the line fits into so many columns.
func (s *state) text(now time.Time, elapsed time.Duration, columns int) string {
	var line string
	for _, part := range s.parts(now, elapsed) {
		part = strings.Map(plain, part)
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

// parts are those of the line, the most important first.
func (s *state) parts(now time.Time, elapsed time.Duration) []string {
	var parts []string
	switch {
	case s.done != "":
		parts = append(parts, wording.Number(s.seen)+" of "+wording.Number(s.seen+int(s.left))+" "+s.done)
	case s.resource == "" && s.evaluated == 0 && s.offline:
		parts = append(parts, "no object evaluated yet")
	case s.resource == "" && s.evaluated == 0:
		parts = append(parts, "waiting for the server")
	case s.resource == "":
	case s.left >= 0:
		parts = append(parts, s.resource+": "+wording.Number(s.seen)+" of "+wording.Number(s.seen+int(s.left))+" read")
	default:
		parts = append(parts, s.resource+": "+wording.Number(s.seen)+" read")
	}
	perSecond := rate(s.seen-s.first, now.Sub(s.since))
	if perSecond >= 1 && s.left > 0 {
		parts = append(parts, "about "+round(time.Duration(float64(s.left)/perSecond*float64(time.Second)))+" left")
	}
	if waited := s.waited - max(0, s.waitedTo.Sub(now)); waited >= time.Second {
		parts = append(parts, "waited "+round(waited)+" for request limits")
	}
	if perSecond >= 1 && s.left != 0 { // or else it is over, and the rate would sink
		parts = append(parts, cmp.Or(s.done[strings.LastIndexByte(s.done, ' ')+1:], "read")+at(perSecond))
	}
	if s.evaluated > 0 {
		parts = append(parts, wording.Number(s.evaluated)+" objects evaluated"+at(rate(s.evaluated, elapsed)))
	}
	return parts
}

// plain keeps the characters that a terminal shows in one column: names of resources
// come from servers.
func plain(r rune) rune {
	if r < ' ' || r > '~' {
		return '?'
	}
	return r
}

func round(d time.Duration) string {
	return max(d.Round(time.Second), time.Second).String()
}

// rate is how many there are in a second; 0 where that is not known.
func rate(n int, in time.Duration) float64 {
	if in <= 0 {
		return 0
	}
	return float64(n) / in.Seconds()
}

func at(perSecond float64) string {
	if perSecond < 1 {
		return ""
	}
	return " at " + wording.Number(int(perSecond)) + "/s"
}
