package journal

import (
	"cmp"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/file"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/write/plan"
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

// Runs returns the runs that the journals in a directory, and in those of runs on several clusters below it,
// record, and other journals, the latest first: those on the cluster of a context, or all if the context is
// empty. Broken is called for each journal that cannot be read; the error is that of the directory.
func Runs(directory, context string, broken func(journal string, err error),
	others ...string,
) ([]Run, error) {
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
	for _, other := range others {
		if !slices.Contains(files, other) {
			files = append(files, other)
		}
	}
	var runs []Run
	for _, j := range glances(files, broken) {
		runs = append(runs, j.Run())
	}
	for _, r := range runs {
		if i := slices.IndexFunc(runs, func(of Run) bool { return r.Undoes != "" && of.ID == r.Undoes }); i >= 0 {
			runs[i].Undone += r.Applied + r.Unchanged
		}
	}
	if context != "" {
		runs = slices.DeleteFunc(runs, func(r Run) bool { return r.Context != context })
	}
	slices.SortStableFunc(runs, func(a, b Run) int {
		return cmp.Or(b.Started.Compare(a.Started), cmp.Compare(a.Journal, b.Journal))
	})
	return runs, nil
}

// glances returns what a Glance at files shows, and calls broken for each that cannot be read.
func glances(files []string, broken func(journal string, err error)) (out []*Journal) {
	for _, file := range files {
		if j, err := Glance(file); err != nil {
			broken(file, err)
		} else {
			out = append(out, j)
		}
	}
	return out
}

// Undone returns the objects, by their names, that runs of a plan wrote, as the journals in Directory record
// it: true for what later runs undid. The clock and the seed of a plan are those of no other. Broken and the
// error are those of Runs.
func Undone(of *plan.Run, broken func(journal string, err error)) (map[engine.ObjectKey]bool, error) {
	dir, err := Directory()
	if err != nil {
		return nil, nil //nolint:nilerr // then no journals are there
	}
	files, err := Files(dir)
	journals := glances(files, broken) // of which the names have the second alone
	slices.SortStableFunc(journals, func(a, b *Journal) int {
		return a.Header.Started.Compare(b.Header.Started)
	})
	undone := map[engine.ObjectKey]bool{}
	// whether a run undid what the plan made: by the IDs of its runs, and of those that undid one of these
	reverts := map[string]bool{}
	for _, j := range journals {
		reverted, reverting := reverts[j.Header.Undoes]
		if !reverting && (j.Header.Undoes != "" || j.Header.Run.Seed != of.Seed ||
			!j.Header.Run.Created.Equal(of.Created)) {
			continue
		}
		reverts[j.Header.ID] = reverting && !reverted
		whole, err := Read(j.Path)
		if err != nil {
			return nil, err
		}
		for i := range whole.Entries {
			if e := &whole.Entries[i]; e.Wrote() {
				undone[e.Object.Named()] = reverts[j.Header.ID]
			}
		}
	}
	return undone, err
}

// Run summarises the journal, but for what later runs undid.
func (j *Journal) Run() Run {
	h := &j.Header
	r := Run{
		ID: h.ID, Started: h.Started, Context: h.Run.Cluster.Context, Server: h.Run.Cluster.Server,
		Command: h.Command, Arguments: h.Arguments, Undoes: h.Undoes, Complete: j.End != nil, Journal: j.Path,
	}
	n := j.Count()
	r.Planned, r.Failed = len(j.Entries)-n[Superseded], n[Failed]
	r.InDoubt, r.Left = n[InDoubt], n[Planned]+n[Partial]
	objects := map[any]bool{} // that were written
	for _, e := range j.Entries {
		written := e.Wrote()
		switch status := e.Status(); {
		case written && status == Done:
			r.Applied++
		case status == Done:
			r.Unchanged++
		}
		if written || e.Status() == InDoubt {
			objects[e.object] = true
		}
	}
	r.Written = len(objects)
	return r
}

// Directory is where journals are kept unless the user names a file: in
// XDG_STATE_HOME or ~/.local/state, on Windows in LocalAppData.
func Directory() (string, error) {
	if dir := os.Getenv("XDG_STATE_HOME"); filepath.IsAbs(dir) {
		return filepath.Join(dir, "kubectl-mutate"), nil
	}
	if runtime.GOOS == "windows" {
		if dir := os.Getenv("LocalAppData"); dir != "" {
			return filepath.Join(dir, "kubectl-mutate"), nil
		}
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return "", fmt.Errorf("no place for a journal: %w; name a file with --journal", err)
	}
	return filepath.Join(home, ".local", "state", "kubectl-mutate"), nil
}

// Extension is that of the files in Directory.
const Extension = ".jsonl"

// NewID makes the ID of a run.
func NewID() string {
	id := make([]byte, 4)
	_, _ = rand.Read(id) // it never fails
	return hex.EncodeToString(id)
}

// timeFormat begins the names, so that they are in the order of their times.
const timeFormat = "20060102T150405Z"

// FileName returns the name of a journal: its time, context and ID.
func FileName(started time.Time, context, id string) string {
	return fileName(started, "-", context, id)
}

func fileName(started time.Time, mark, context, id string) string {
	return started.UTC().Format(timeFormat) + mark + file.PlainName(context) + "-" + id + Extension
}

// watchMark stands in the name behind the time: a context has no dot there.
const watchMark = ".watch-"

// WatchFileName is FileName for the journal of a watch.
func WatchFileName(started time.Time, context, id string) string {
	return fileName(started, watchMark, context, id)
}

// Prune removes the journals in a directory that were written last before a time, and then the oldest until
// the others take no more bytes than most; 0 stands for any number. Those of watches alone are removed where
// that is wanted, and never one that is kept, by its path. A directory that does not exist has none.
func Prune(directory string, before time.Time, most int64, watches bool, kept string) error {
	files, err := Files(directory)
	if err != nil {
		return err
	}
	var size int64
	for _, path := range slices.Backward(files) {
		info, err := os.Stat(path)
		switch {
		case err != nil: // somebody else has removed it
			continue
		case watches &&
			!strings.HasPrefix(filepath.Base(path)[min(len(filepath.Base(path)), len(timeFormat)):], watchMark):
			continue
		}
		if size += info.Size(); path == kept || !info.ModTime().Before(before) && (most == 0 || size <= most) {
			continue
		}
		size -= info.Size()
		if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
			return &Error{Path: path, Err: err}
		}
	}
	return nil
}

// fleetMark stands in the name between time and ID.
const fleetMark = "-fleet-"

// FleetName returns the name of a directory of journals, one for each cluster of a run on several: its time
// and ID.
func FleetName(started time.Time, id string) string {
	return started.UTC().Format(timeFormat) + fleetMark + id
}

// Files returns the journals in a directory by name, and so by time. A directory that
// does not exist has none.
func Files(directory string) ([]string, error) {
	entries, err := os.ReadDir(directory)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("journals: %w", err)
	}
	var out []string
	for _, e := range entries {
		if e.Type().IsRegular() && strings.HasSuffix(e.Name(), Extension) {
			out = append(out, filepath.Join(directory, e.Name()))
		}
	}
	return out, nil
}

// Latest is how a user names the latest run.
const Latest = "latest"

// Find returns the file that a user named by its path, by the ID that history shows, or as
// Latest: that of the latest run on the cluster of a context which may report to be one that
// is meant.
func Find(text, context string, may func(*Run) bool) (string, error) {
	if _, err := os.Stat(text); err == nil || !errors.Is(err, os.ErrNotExist) ||
		strings.ContainsAny(text, `/\.`) {
		return text, nil // what is wrong with it shows when it is read
	}
	dir, err := Directory()
	if err != nil {
		return "", err
	}
	if text == Latest {
		return latest(dir, context, may)
	}
	files, err := Files(dir)
	if err != nil {
		return "", err
	}
	for _, file := range files {
		if isOf(file, text) {
			return file, nil
		}
	}
	return "", fmt.Errorf("there is no journal %q: name a file, an ID of those that `history` lists, or %s", text, Latest)
}

// latest returns the journal of the latest run. One that cannot be read, and whose name says that
// it is later, is an error.
func latest(dir, context string, may func(*Run) bool) (string, error) {
	unread := map[string]error{} // by file
	runs, err := Runs(dir, "", func(file string, err error) { unread[file] = err })
	if err != nil {
		return "", err
	}
	found := slices.IndexFunc(runs, func(r Run) bool { return r.Context == context && may(&r) })
	if found < 0 {
		return "", fmt.Errorf("%s: there is no such run in context %q: `history --all` lists those of all contexts", Latest, context)
	}
	for file, err := range unread {
		if file > runs[found].Journal {
			return "", fmt.Errorf("%s: it is not known which run is: name one of those that `history` lists: %w", Latest, err)
		}
	}
	return runs[found].Journal, nil
}

// nameOf returns how a user can name a journal: by the ID of its run, or else by its path.
func nameOf(path string) string {
	base := strings.TrimSuffix(filepath.Base(path), Extension)
	id := base[strings.LastIndex(base, "-")+1:]
	if dir, err := Directory(); err == nil && filepath.Dir(path) == filepath.Clean(dir) && isOf(path, id) {
		return id
	}
	return path
}

// isOf reports whether a journal has the name that FileName gives it for an ID.
func isOf(path, id string) bool {
	return validID.MatchString(id) && strings.HasSuffix(filepath.Base(path), "-"+id+Extension)
}

// validID matches what NewID makes.
var validID = regexp.MustCompile(`^[0-9a-f]{8}$`)
