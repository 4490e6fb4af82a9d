package apply

// Tally counts the results of a run.
type Tally struct {
	Written  int // or planned, in a dry run
	Failed   int // objects that are not as wanted, whatever the reason
	Rejected int // those of them that the server, or an owner, rejects
	NotTried int
	// LeftAlone are the objects that something else manages, as the user was shown before.
	LeftAlone int
	// Outcomes counts the results by outcome; nil if there is none.
	Outcomes map[string]int
}

// add counts a result. Expected says that the user was shown that something else manages the object.
func (t *Tally) add(r *Result, expected bool) {
	if t.Outcomes == nil {
		t.Outcomes = map[string]int{}
	}
	t.Outcomes[string(r.Outcome)]++
	switch {
	case r.Outcome == Applied, r.Outcome == Planned:
		t.Written++
	case r.Outcome == NotTried:
		t.NotTried++
	case r.Outcome == Managed && expected:
		t.LeftAlone++
	case r.Err != nil:
		t.Failed++
	}
	if r.Outcome.Rejection() {
		t.Rejected++
	}
	switch {
	case r.Status == nil || r.Status.Err == nil:
	case r.Status.Outcome == NotTried:
		t.NotTried++
	default:
		t.Failed++
	}
}
