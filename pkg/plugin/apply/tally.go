package apply

// Tally counts the results of a run.
type Tally struct {
	Written  int // or planned, in a dry run
	Failed   int // objects that are not as wanted, whatever the reason
	Rejected int // those of them that the server, or an owner, rejects
	NotTried int
	// Outcomes counts the results by outcome; nil if there is none.
	Outcomes map[string]int
}

func (t *Tally) add(r *Result) {
	if t.Outcomes == nil {
		t.Outcomes = map[string]int{}
	}
	t.Outcomes[string(r.Outcome)]++
	switch {
	case r.Outcome == Applied, r.Outcome == Planned:
		t.Written++
	case r.Outcome == NotTried:
		t.NotTried++
	case r.Err != nil:
		t.Failed++
	}
	if r.Outcome.Rejection() {
		t.Rejected++
	}
	if r.Status != nil && r.Status.Err != nil {
		t.Failed++
	}
}
