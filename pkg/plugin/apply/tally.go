package apply

// Tally is what came of a run so far.
type Tally struct {
	Written  int // or planned, by a run that only rehearses
	Failed   int // every object that is not as wanted, whatever the reason
	Rejected int // those of them that the server, or an owner, stands against
	NotTried int
	// Outcomes counts the results; nil where there is none, not even that there was
	// nothing to do.
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
