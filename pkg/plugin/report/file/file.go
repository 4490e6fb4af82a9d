package file

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// The modes of new files. Reports are made for others: the agent that collects
// them runs as somebody else.
const (
	Shared  fs.FileMode = 0o644
	Private fs.FileMode = 0o600
)

// File is written piece by piece, under another name beside its own. Commit gives
// it its name in one step. A device or a pipe is written to as it is.
type File struct {
	path string
	mode fs.FileMode

	place  string // where the file goes: path with its links followed
	direct bool   // no ordinary file
	file   *os.File
	buffer *bufio.Writer
	ended  bool
}

// New tells, before anything is done, whether a file can be expected to be
// written. It creates none.
func New(path string, mode fs.FileMode) (*File, error) {
	f := &File{path: path, place: path, mode: mode}
	// What is behind these names may be an ordinary file that others write to as well.
	if strings.HasPrefix(filepath.Clean(path), "/dev/") {
		f.direct = true
		return f, nil
	}
	if followed, err := filepath.EvalSymlinks(path); err == nil {
		f.place = followed
	}
	info, err := os.Stat(f.place)
	switch {
	case err == nil && info.IsDir():
		return nil, fmt.Errorf("%s is a directory", path)
	case err == nil:
		f.direct = !info.Mode().IsRegular()
		return f, nil
	case !errors.Is(err, fs.ErrNotExist):
		return nil, err
	}
	dir, err := os.Stat(filepath.Dir(f.place))
	if err == nil && !dir.IsDir() {
		err = fmt.Errorf("%s is no directory", filepath.Dir(path))
	}
	return f, err
}

// Write writes a piece.
func (f *File) Write(p []byte) (int, error) {
	if err := f.open(); err != nil {
		return 0, f.told(err)
	}
	n, err := f.buffer.Write(p)
	return n, f.told(err)
}

func (f *File) open() (err error) {
	switch {
	case f.ended:
		return fs.ErrClosed
	case f.file != nil:
		return nil
	case f.direct:
		f.file, err = os.OpenFile(f.path, os.O_WRONLY|os.O_APPEND, 0)
	default:
		// In the same directory, since renaming does not cross file systems.
		f.file, err = os.CreateTemp(filepath.Dir(f.place), "."+filepath.Base(f.place)+".*")
	}
	if err == nil {
		f.buffer = bufio.NewWriter(f.file)
	}
	return err
}

// Commit ends the file and gives it its name. An empty one is a file, too.
func (f *File) Commit() error {
	if err := f.open(); err != nil {
		return f.told(err)
	}
	err := f.buffer.Flush()
	if err == nil && !f.direct {
		err = f.file.Chmod(f.mode)
	}
	if err != nil {
		return f.told(errors.Join(err, f.Discard()))
	}
	f.ended = true
	err = f.file.Close()
	if err == nil && !f.direct {
		err = os.Rename(f.file.Name(), f.place)
	}
	if err != nil && !f.direct {
		err = errors.Join(err, os.Remove(f.file.Name()))
	}
	return f.told(err)
}

// Discard removes what was written, unless it was committed.
func (f *File) Discard() error {
	if f.ended || f.file == nil {
		return nil
	}
	f.ended = true
	err := f.file.Close()
	if !f.direct {
		err = errors.Join(err, os.Remove(f.file.Name()))
	}
	return err
}

func (f *File) told(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("writing %s: %w", f.path, err)
}

var _ io.Writer = (*File)(nil)
