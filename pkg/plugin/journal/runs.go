package journal

import (
	"cmp"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// Run summarises one journal.
type Run struct {
	ID        string    `json:"id"`
	Started   time.Time `json:"started"`
	Context   string    `json:"context,omitempty"`
	Server    string    `json:"server,omitempty"`
	Command   string    `json:"command"`
	Arguments []string  `json:"arguments,omitempty"`
	Planned   int       `json:"planned"`
	Applied   int       `json:"applied"`
	Unchanged int       `json:"unchanged"` // found to be as wanted, or gone
	Failed    int       `json:"failed"`
	InDoubt   int       `json:"inDoubt"`
	Left      int       `json:"left"`
	// Written counts the objects of which anything was stored, or may have been: what can be undone.
	Written int `json:"-"`
	// Complete reports that the run finished.
	Complete bool `json:"complete"`
	// Undoes is the ID of the run that this one undid.
	Undoes string `json:"undoes,omitempty"`
	// Undone counts the objects of this run that later runs undid.
	Undone  int    `json:"undone"`
	Journal string `json:"journal"`
}

// Name returns how a user can name the run: by its ID, or by the journal if that has another name
// or is kept elsewhere.
func (r *Run) Name() string { return nameOf(r.Journal) }

// Resumable reports whether the run was interrupted and can be resumed.
func (r *Run) Resumable() bool { return r.Undoes == "" && r.InDoubt+r.Left > 0 }

// Undoable reports whether the run wrote what has not been undone.
func (r *Run) Undoable() bool { return r.Undoes == "" && r.Written > r.Undone }

// Runs returns the runs that the journals in a directory, and in those of runs on several clusters below it, record, the latest first:
// those on the cluster of a context, or all if the context is empty. Broken is called
// for each journal that cannot be read; the error is that of the directory.
func Runs(directory, context string, broken func(journal string, err error)) ([]Run, error) {
	files, err := Files(directory)
	if err != nil {
		return nil, err
	}
	entries, _ := os.ReadDir(directory) // as in Files
	for _, e := range entries {
		if fleet := filepath.Join(directory, e.Name()); e.IsDir() && strings.Contains(e.Name(), fleetMark) {
			more, err := Files(fleet)
			if err != nil {
				broken(fleet, err)
			}
			files = append(files, more...)
		}
	}
	var runs []Run
	for _, file := range files {
		j, err := Glance(file)
		if err != nil {
			broken(file, err)
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

// Run summarises the journal, but for what later runs undid.
func (j *Journal) Run() Run { return runOf(j) }

func runOf(j *Journal) Run {
	h := &j.Header
	r := Run{
		ID: h.ID, Started: h.Started, Context: h.Run.Cluster.Context, Server: h.Run.Cluster.Server,
		Command: h.Command, Arguments: h.Arguments, Undoes: h.Undoes, Complete: j.End != nil, Journal: j.Path,
	}
	n := j.Count()
	r.Planned, r.Failed = len(j.Entries), n[Failed]
	r.InDoubt, r.Left = n[InDoubt], n[Planned]+n[Partial]
	for i := range j.Entries {
		e := &j.Entries[i]
		written := e.Wrote()
		switch status := e.Status(); {
		case written && status == Done:
			r.Applied++
		case status == Done:
			r.Unchanged++
		}
		if written || e.Status() == InDoubt {
			r.Written++
		}
	}
	return r
}

// countUndone sets for each run how many of its objects others undid.
func countUndone(runs []Run) {
	for _, r := range runs {
		i := slices.IndexFunc(runs, func(of Run) bool { return r.Undoes != "" && of.ID == r.Undoes })
		if i >= 0 {
			runs[i].Undone += r.Applied + r.Unchanged
		}
	}
}
