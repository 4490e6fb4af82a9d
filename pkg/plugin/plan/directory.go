package plan

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/file"
)

// Extension is that of the plans in a directory.
const Extension = ".plan"

// FileName returns the name of a cluster's plan in a directory. Plans are applied in the order of their
// names, which is that of the places.
func FileName(place int, context string) string {
	return fmt.Sprintf("%03d-%s%s", place, file.PlainName(context), Extension)
}

// JournalName returns the path of the journal beside a plan.
func JournalName(path, extension string) string {
	return strings.TrimSuffix(path, Extension) + extension
}

// Files returns the plans in a directory, in the order in which they are applied. It is an error if there
// is none, or if another user may have put them together.
func Files(directory string) ([]string, error) {
	if err := file.CheckDirectory(directory); err != nil {
		return nil, fileError(directory, err)
	}
	out, err := plans(directory)
	if err == nil && len(out) == 0 {
		err = &FileError{Path: directory, Err: errors.New("the directory has no plan: preview --contexts --save makes them")}
	}
	return out, err
}

func plans(directory string) ([]string, error) {
	entries, err := os.ReadDir(directory)
	if err != nil {
		return nil, fileError(directory, err)
	}
	var out []string
	for _, e := range entries {
		if !e.IsDir() && strings.HasSuffix(e.Name(), Extension) {
			out = append(out, filepath.Join(directory, e.Name()))
		}
	}
	return out, nil
}

// MakeDirectory makes a directory for plans, for its owner alone. One that has plans already is an error:
// they would be applied, too.
func MakeDirectory(path string) error {
	there, err := plans(path)
	if errors.Is(err, fs.ErrNotExist) {
		return fileError(path, os.MkdirAll(path, 0o700))
	}
	if err == nil && len(there) > 0 {
		err = &FileError{Path: path, Err: fmt.Errorf("the directory has plans already, such as %s: name another one", filepath.Base(there[0]))}
	}
	return err
}

// IsDirectory reports whether a path is a directory.
func IsDirectory(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}
