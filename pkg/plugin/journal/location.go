package journal

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"
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

// FileName returns the name of a journal: its time, context and ID.
func FileName(started time.Time, context, id string) string {
	return fmt.Sprintf("%s-%s-%s%s", started.UTC().Format("20060102T150405Z"), plainName(context), id, Extension)
}

const longestName = 64

// plainName replaces what some file systems do not allow in the name of a context.
func plainName(s string) string {
	plain := func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '.', r == '_', r == '-':
			return r
		}
		return '-'
	}
	s = strings.Trim(strings.Map(plain, s), ".-")
	if s == "" {
		return "cluster"
	}
	return s[:min(len(s), longestName)]
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

// Find returns the file that a user named by its path, or by the ID that history
// shows.
func Find(text string) (string, error) {
	if _, err := os.Stat(text); err == nil || !errors.Is(err, os.ErrNotExist) || strings.ContainsAny(text, `/\.`) {
		return text, nil // what is wrong with it shows when it is read
	}
	dir, err := Directory()
	if err != nil {
		return "", err
	}
	files, err := Files(dir)
	if err != nil {
		return "", err
	}
	for _, file := range files {
		if strings.HasSuffix(file, "-"+text+Extension) {
			return file, nil
		}
	}
	return "", fmt.Errorf("there is no journal %q: name a file, or an ID of those that `history` lists", text)
}
