package progress

import (
	"strings"
	"time"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/wording"
)

// state is how far a run has come.
type state struct {
	resource    string    // that is being read
	done        string    // what is done with objects that are known; empty while they are read
	since       time.Time // the first page of it
	first, seen int       // objects of it by then, and by now
	left        int64
	evaluated   int
	waited      time.Duration
}

// text returns the line, such as "pods: 1,500 of 10,000 read, about 9s left, 900/s,
// 1,000 objects evaluated", the most important first. It leaves out the last parts, so
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
		parts = append(parts, wording.Number(s.seen)+" of "+wording.Number(s.seen+int(s.left))+" objects "+s.done)
	case s.resource == "" && s.evaluated == 0:
		parts = append(parts, "waiting for the server")
	case s.resource == "":
	case s.left >= 0:
		parts = append(parts, s.resource+": "+wording.Number(s.seen)+" of "+wording.Number(s.seen+int(s.left))+" read")
	default:
		parts = append(parts, s.resource+": "+wording.Number(s.seen)+" read")
	}
	perSecond := float64(s.seen-s.first) / now.Sub(s.since).Seconds()
	counts := s.resource != "" || s.done != ""
	if !counts || s.seen == s.first {
		perSecond = float64(s.evaluated) / elapsed.Seconds()
	}
	if perSecond >= 1 && counts && s.left > 0 {
		left := time.Duration(float64(s.left) / perSecond * float64(time.Second))
		parts = append(parts, "about "+round(left)+" left")
	}
	if s.waited >= time.Second {
		parts = append(parts, "waited "+round(s.waited)+" for request limits")
	}
	if perSecond >= 1 {
		parts = append(parts, wording.Number(int(perSecond))+"/s")
	}
	if s.evaluated > 0 {
		parts = append(parts, wording.Number(s.evaluated)+" objects evaluated")
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
