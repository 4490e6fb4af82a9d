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

// Run summarizes a journal.
type Run struct {
	ID        string    `json:"id"`
	Started   time.Time `json:"started"`
	Context   string    `json:"context,omitempty"`
	Server    string    `json:"server,omitempty"`
	Command   string    `json:"command"`
	Arguments []string  `json:"arguments,omitempty"`
	Planned   int       `json:"planned"`
	Applied   int       `json:"applied"`
	Unchanged int       `json:"unchanged"` // already as wanted, or deleted
	Failed    int       `json:"failed"`
	InDoubt   int       `json:"inDoubt"`
	Left      int       `json:"left"`
	// Written counts the objects that were or may have been stored, and can be undone.
	Written int `json:"-"`
	// Complete reports that the run finished.
	Complete bool `json:"complete"`
	// Undoes is the ID of the run that this run undid.
	Undoes string `json:"undoes,omitempty"`
	// Undone counts the objects of this run undone by later runs.
	Undone  int    `json:"undone"`
	Journal string `json:"journal"`
}

// Name returns the name of the run for users: its ID, or the journal's path if it is renamed or outside
// Directory.
func (r *Run) Name() string { return nameOf(r.Journal) }

// Resumable reports whether the run was interrupted and can be resumed.
func (r *Run) Resumable() bool { return r.Undoes == "" && r.InDoubt+r.Left > 0 }

// Undoable reports whether the run has writes that were not undone.
func (r *Run) Undoable() bool { return r.Undoes == "" && r.Written > r.Undone }

// Runs returns the runs recorded in a directory, including its subdirectories of fleet runs, and in other
// journals, latest first: those on the cluster of a context, or all if it is empty. Broken is called for each
// unreadable journal; the error is from reading the directory.
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

// glances returns a Glance at each file, and calls broken for unreadable ones.
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

// Undone returns the objects that runs of a plan wrote, by name, from the journals in Directory: true if
// later runs undid them. A plan is identified by its clock and seed. Broken and the error are as for Runs.
func Undone(of *plan.Run, broken func(journal string, err error)) (map[engine.ObjectKey]bool, error) {
	dir, err := Directory()
	if err != nil {
		return nil, nil //nolint:nilerr // then no journals are there
	}
	files, err := Files(dir)
	journals := glances(files, broken) // their names only have seconds
	slices.SortStableFunc(journals, func(a, b *Journal) int {
		return a.Header.Started.Compare(b.Header.Started)
	})
	undone := map[engine.ObjectKey]bool{}
	// whether a run reverts the plan, by the IDs of its runs and of those that undid one of these
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

// Run summarizes the journal, without undos by later runs.
func (j *Journal) Run() Run {
	h := &j.Header
	r := Run{
		ID: h.ID, Started: h.Started, Context: h.Run.Cluster.Context, Server: h.Run.Cluster.Server,
		Command: h.Command, Arguments: h.Arguments, Undoes: h.Undoes, Complete: j.End != nil, Journal: j.Path,
	}
	n := j.Count()
	r.Planned, r.Failed = len(j.Entries)-n[Superseded], n[Failed]
	r.InDoubt, r.Left = n[InDoubt], n[Planned]+n[Partial]
	objects := map[any]bool{} // written objects
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

// Directory is the default directory of journals: in XDG_STATE_HOME or ~/.local/state, on Windows in
// LocalAppData.
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

// Extension is the extension of journal files.
const Extension = ".jsonl"

// NewID returns a random run ID.
func NewID() string {
	id := make([]byte, 4)
	_, _ = rand.Read(id) // it never fails
	return hex.EncodeToString(id)
}

// timeFormat is the prefix of the names, which makes them sort by time.
const timeFormat = "20060102T150405Z"

// FileName returns the name of a journal: its time, context and ID.
func FileName(started time.Time, context, id string) string {
	return fileName(started, "-", context, id)
}

func fileName(started time.Time, mark, context, id string) string {
	return started.UTC().Format(timeFormat) + mark + file.PlainName(context) + "-" + id + Extension
}

// watchMark follows the time in the name: a context has no dot there.
const watchMark = ".watch-"

// WatchFileName is FileName for the journal of a watch.
func WatchFileName(started time.Time, context, id string) string {
	return fileName(started, watchMark, context, id)
}

// Prune removes the journals in a directory that were last written before a time, then the oldest until the
// rest has at most most bytes; 0: no limit. With watches, only journals of watches are removed; the path kept
// never is. A missing directory is empty.
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

// fleetMark is between time and ID in the name.
const fleetMark = "-fleet-"

// FleetName returns the directory name of a fleet run's journals, one per cluster: its time and ID.
func FleetName(started time.Time, id string) string {
	return started.UTC().Format(timeFormat) + fleetMark + id
}

// Files returns the journals in a directory by name, and so by time. A missing directory is empty.
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

// Latest is the name of the latest run for users.
const Latest = "latest"

// Find returns the journal that a user named by its path, by its ID in history, or as Latest: the latest run
// on the cluster of a context for which may returns true.
func Find(text, context string, may func(*Run) bool) (string, error) {
	if _, err := os.Stat(text); err == nil || !errors.Is(err, os.ErrNotExist) ||
		strings.ContainsAny(text, `/\.`) {
		return text, nil // reading it reports the error
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

// latest returns the journal of the latest run. A later journal, by its name, that cannot be read is an
// error.
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

// nameOf returns a journal's name for users: the ID of its run, or else its path.
func nameOf(path string) string {
	base := strings.TrimSuffix(filepath.Base(path), Extension)
	id := base[strings.LastIndex(base, "-")+1:]
	if dir, err := Directory(); err == nil && filepath.Dir(path) == filepath.Clean(dir) && isOf(path, id) {
		return id
	}
	return path
}

// isOf reports whether FileName gave a journal its name, with this ID.
func isOf(path, id string) bool {
	return validID.MatchString(id) && strings.HasSuffix(filepath.Base(path), "-"+id+Extension)
}

// validID matches the IDs of NewID.
var validID = regexp.MustCompile(`^[0-9a-f]{8}$`)
