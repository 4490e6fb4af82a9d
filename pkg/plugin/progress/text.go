package progress

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// state is how far a run has come.
type state struct {
	resource    string    // that is being read
	did         string    // what is done with objects that are known; empty while they are read
	since       time.Time // the first page of it
	first, seen int       // objects of it by then, and by now
	left        int64
	evaluated   int
	waited      time.Duration
}

// text is the line, such as "pods: 1,500 of 10,000 read, about 9s left, 900/s, 1,000
// objects evaluated": what matters most stands first. Of what follows that, so much
// is left out that it takes no more columns than there are.
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

// parts are what there is to tell, what matters most first.
func (s *state) parts(now time.Time, elapsed time.Duration) []string {
	var parts []string
	switch {
	case s.did != "":
		parts = append(parts, number(s.seen)+" of "+number(s.seen+int(s.left))+" objects "+s.did)
	case s.resource == "" && s.evaluated == 0:
		parts = append(parts, "waiting for the server")
	case s.resource == "":
	case s.left >= 0:
		parts = append(parts, s.resource+": "+number(s.seen)+" of "+number(s.seen+int(s.left))+" read")
	default:
		parts = append(parts, s.resource+": "+number(s.seen)+" read")
	}
	perSecond := float64(s.seen-s.first) / now.Sub(s.since).Seconds()
	counts := s.resource != "" || s.did != ""
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
		parts = append(parts, number(int(perSecond))+"/s")
	}
	if s.evaluated > 0 {
		parts = append(parts, number(s.evaluated)+" objects evaluated")
	}
	return parts
}

// plain keeps what a terminal shows in one column: names of resources come from servers.
func plain(r rune) rune {
	if r < ' ' || r > '~' {
		return '?'
	}
	return r
}

func round(d time.Duration) string {
	return max(d.Round(time.Second), time.Second).String()
}

// number has a comma between thousands.
func number(n int) string {
	if n < 1000 {
		return strconv.Itoa(n)
	}
	return fmt.Sprintf("%s,%03d", number(n/1000), n%1000)
}
