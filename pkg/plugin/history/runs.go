package history

import (
	"cmp"
	"slices"
	"time"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/journal"
)

// Run is one journal at a glance.
type Run struct {
	ID        string    `json:"id"`
	Started   time.Time `json:"started"`
	Context   string    `json:"context,omitempty"`
	Server    string    `json:"server,omitempty"`
	Command   string    `json:"command"`
	Arguments []string  `json:"arguments,omitempty"`
	Planned   int       `json:"planned"`
	Applied   int       `json:"applied"` // or found to be as wanted
	Failed    int       `json:"failed"`
	InDoubt   int       `json:"inDoubt"`
	Left      int       `json:"left"`
	// Complete tells that the run came to its end.
	Complete bool `json:"complete"`
	// Undoes is the run whose writes this one took back.
	Undoes string `json:"undoes,omitempty"`
	// Undone counts the objects of this run that later ones took back.
	Undone  int    `json:"undone"`
	Journal string `json:"journal"`
}

// Read reads the runs from the journals in a directory, the latest first: those on
// the cluster of a context, or with no context all. Broken is told of each journal
// that cannot be read; the error is that of the directory.
func Read(directory, context string, broken func(error)) ([]Run, error) {
	files, err := journal.Files(directory)
	if err != nil {
		return nil, err
	}
	var runs []Run
	for _, file := range files {
		j, err := journal.Glance(file)
		if err != nil {
			broken(err)
			continue
		}
		runs = append(runs, runOf(j))
	}
	countUndone(runs)
	if context != "" {
		runs = slices.DeleteFunc(runs, func(r Run) bool { return r.Context != context })
	}
	slices.SortStableFunc(runs, func(a, b Run) int {
		return cmp.Or(b.Started.Compare(a.Started), cmp.Compare(a.Journal, b.Journal))
	})
	return runs, nil
}

func runOf(j *journal.Journal) Run {
	h := &j.Header
	r := Run{
		ID: h.ID, Started: h.Started, Context: h.Run.Cluster.Context, Server: h.Run.Cluster.Server,
		Command: h.Command, Arguments: h.Arguments, Undoes: h.Undoes, Complete: j.End != nil, Journal: j.Path,
	}
	n := j.Count()
	r.Planned, r.Applied, r.Failed = len(j.Entries), n[journal.Done], n[journal.Failed]
	r.InDoubt, r.Left = n[journal.InDoubt], n[journal.Planned]+n[journal.Partial]
	return r
}

// countUndone gives each run what others took back of it.
func countUndone(runs []Run) {
	for _, r := range runs {
		i := slices.IndexFunc(runs, func(of Run) bool { return r.Undoes != "" && of.ID == r.Undoes })
		if i >= 0 {
			runs[i].Undone += r.Applied
		}
	}
}
