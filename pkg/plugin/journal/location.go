package journal

import (
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

	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/file"
)

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
	return fmt.Sprintf("%s-%s-%s%s", started.UTC().Format(timeFormat), file.PlainName(context), id, Extension)
}

// fleetMark stands in the name between time and ID.
const fleetMark = "-fleet-"

// FleetName returns the name of a directory of journals, one for each cluster of a run on several: its time and ID.
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
	if _, err := os.Stat(text); err == nil || !errors.Is(err, os.ErrNotExist) || strings.ContainsAny(text, `/\.`) {
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
