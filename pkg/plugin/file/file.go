package file

import (
	"bufio"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// The modes of new files. Reports and metrics are made for others: the agent that
// collects them runs as somebody else.
const (
	Shared  fs.FileMode = 0o644
	Private fs.FileMode = 0o600
)

// temporary is the pattern of the names of files that are not whole yet. It is as
// long for every file: a name may be as long as the file system allows.
const temporary = ".kubectl-mutate-*"

// File is written piece by piece, under another name beside its own. Commit gives
// it its name in one step. A device or a pipe is written to as it is. Its errors
// are *fs.PathError with the path that New was called with.
type File struct {
	path string
	mode fs.FileMode

	place  string // where the file goes: path with its links followed
	direct bool   // no ordinary file
	file   *os.File
	buffer *bufio.Writer
	ended  bool
}

// New tells, before anything is done, whether a file can be written. It leaves
// nothing behind. The mode is that of the file when it is whole, also if it takes
// the place of one with another.
func New(path string, mode fs.FileMode) (*File, error) {
	f := &File{path: path, place: path, mode: mode}
	info, err := os.Stat(path)
	switch {
	case isStream(path) || err == nil && !info.Mode().IsRegular() && !info.IsDir():
		f.direct = true
		return f, nil
	case err == nil && info.IsDir():
		return nil, f.told(errDirectory)
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return nil, f.told(err)
	}
	f.place = behind(path)
	probe, err := f.create()
	if err == nil {
		err = errors.Join(probe.Close(), os.Remove(probe.Name()))
	}
	if err != nil {
		return nil, f.told(err)
	}
	return f, nil
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
		f.file, err = f.create()
	}
	if err == nil {
		f.buffer = bufio.NewWriter(f.file)
	}
	return err
}

// create makes a file for its owner alone, in the same directory, since renaming
// does not cross file systems.
func (f *File) create() (*os.File, error) {
	return os.CreateTemp(filepath.Dir(f.place), temporary)
}

// Commit ends the file and gives it its name. An empty one is a file, too. If that
// fails, what was there before still is, and nothing else.
func (f *File) Commit() error {
	if err := f.open(); err != nil {
		return f.told(err)
	}
	err := f.buffer.Flush()
	if err == nil && !f.direct {
		err = f.durable()
	}
	if err != nil {
		return f.told(errors.Join(err, f.Discard()))
	}
	f.ended = true
	err = f.file.Close()
	if f.direct {
		return f.told(err)
	}
	if err == nil {
		err = os.Rename(f.file.Name(), f.place)
	}
	if err != nil {
		err = errors.Join(err, os.Remove(f.file.Name()))
	}
	return f.told(err)
}

// durable makes the file what it is to be, on the disk: a machine that stops
// after the renaming would else come back with a name and nothing behind it.
func (f *File) durable() error {
	if err := f.file.Chmod(f.mode); err != nil {
		return err
	}
	return f.file.Sync()
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
	return f.told(err)
}

var _ io.Writer = (*File)(nil)
