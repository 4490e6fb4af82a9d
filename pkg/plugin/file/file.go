// Package file replaces files in one step once they are complete, and checks who can write to a file.
package file

import (
	"bufio"
	"cmp"
	"crypto/rand"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// The modes of new files, less the umask. Reports and metrics are shared: the agent that collects them runs
// as another user.
const (
	Shared  fs.FileMode = 0o644
	Private fs.FileMode = 0o600
)

// temporary is the prefix of incomplete files. The rest of their name is random: that of the file may
// already be as long as the file system allows.
const temporary = ".kubectl-mutate-"

// File is written piece by piece, under a temporary name in the same directory; Commit renames it. Devices
// and pipes are written to directly. Its errors are *fs.PathError with the path given to New.
type File struct {
	path string
	mode fs.FileMode

	place  string // where the file goes: path with its links followed
	direct bool   // no regular file
	file   *os.File
	buffer *bufio.Writer
	ended  bool
}

// New returns a File, or an error if it cannot be written. It leaves nothing behind. The committed file has
// the given mode even if it replaces another.
func New(path string, mode fs.FileMode) (*File, error) {
	f := &File{path: path, place: path, mode: mode}
	info, err := os.Stat(path)
	switch {
	case isStream(path) || err == nil && !info.Mode().IsRegular() && !info.IsDir():
		f.direct = true
		return f, nil
	case err == nil && info.IsDir():
		return nil, f.failed(errors.New("is a directory"))
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return nil, f.failed(err)
	}
	f.place = behind(path)
	if err := f.probe(); err != nil {
		return nil, f.failed(err)
	}
	return f, nil
}

// probe checks that the file can be written, and applies the umask to its mode.
func (f *File) probe() error {
	probe, err := f.create(f.mode)
	if err != nil {
		return err
	}
	info, err := probe.Stat()
	if err == nil {
		f.mode = info.Mode().Perm()
	}
	return errors.Join(err, probe.Close(), os.Remove(probe.Name()))
}

// Write writes a piece.
func (f *File) Write(p []byte) (int, error) {
	if err := f.open(); err != nil {
		return 0, f.failed(err)
	}
	n, err := f.buffer.Write(p)
	return n, f.failed(err)
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
		f.file, err = f.create(Private) // until it has its name
	}
	if err == nil {
		f.buffer = bufio.NewWriter(f.file)
	}
	return err
}

// create creates a file in the same directory, since renaming does not cross file systems.
func (f *File) create(mode fs.FileMode) (*os.File, error) {
	for {
		name := filepath.Join(filepath.Dir(f.place), temporary+rand.Text())
		file, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_EXCL, mode)
		if !errors.Is(err, fs.ErrExist) {
			return file, err
		}
	}
}

// Commit closes and renames the file, even if nothing was written. On an error, only the previous file is
// left.
func (f *File) Commit() error {
	if err := f.open(); err != nil {
		return f.failed(err)
	}
	err := f.buffer.Flush()
	// a machine that stops after the renaming would otherwise come back with a name and no content
	if err == nil && !f.direct {
		err = cmp.Or(f.file.Chmod(f.mode), f.file.Sync())
	}
	if err != nil {
		return f.failed(errors.Join(err, f.Discard()))
	}
	f.ended = true
	err = f.file.Close()
	if f.direct {
		return f.failed(err)
	}
	if err == nil {
		err = os.Rename(f.file.Name(), f.place)
	}
	if err != nil {
		err = errors.Join(err, os.Remove(f.file.Name()))
	}
	return f.failed(err)
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
	return f.failed(err)
}

var _ io.Writer = (*File)(nil)

// Check returns the *fs.PathError with which NewRegular would fail now. It leaves nothing behind.
func Check(path string, mode fs.FileMode) error {
	_, err := NewRegular(path, mode)
	return err
}

// Replace writes a whole file, or leaves the previous one. It fails where NewRegular does, with a
// *fs.PathError.
func Replace(path string, mode fs.FileMode, text []byte) error {
	f, err := NewRegular(path, mode)
	if err != nil {
		return err
	}
	if _, err := f.Write(text); err != nil {
		return f.failed(errors.Join(err, f.Discard()))
	}
	return f.Commit()
}

// Rewrite is Replace for an existing file, which keeps its mode whatever the umask is.
func Rewrite(path string, text []byte) error {
	info, err := os.Lstat(path)
	if err != nil {
		return err
	}
	f, err := NewRegular(path, info.Mode().Perm())
	if err != nil {
		return err
	}
	f.mode = info.Mode().Perm()
	if _, err := f.Write(text); err != nil {
		return f.failed(errors.Join(err, f.Discard()))
	}
	return f.Commit()
}

// NewRegular is New for a file that is read later: it fails for devices, pipes and links, so that it
// replaces only what its path names.
func NewRegular(path string, mode fs.FileMode) (*File, error) {
	f, err := New(path, mode)
	if err != nil {
		return nil, err
	}
	info, err := os.Lstat(path)
	switch isLink := err == nil && info.Mode()&fs.ModeSymlink != 0; {
	case f.direct:
		return nil, f.failed(errors.New("not a regular file"))
	case isLink:
		return nil, f.failed(errors.New("it is a link, which is not followed: name the file itself"))
	}
	f.place = path // also if it has become a link meanwhile
	return f, nil
}

// isStream reports whether a path names an open file of this process. It may be a regular file that others
// write to as well.
func isStream(path string) bool {
	path = filepath.ToSlash(filepath.Clean(path))
	return slices.Contains([]string{"/dev/stdout", "/dev/stderr"}, path) ||
		strings.HasPrefix(path, "/dev/fd/") || strings.HasPrefix(path, "/proc/self/fd/")
}

// maxLinks is more than an operating system follows.
const maxLinks = 255

// behind returns the target of a path. Unlike filepath.EvalSymlinks it also follows a link to a missing
// file.
func behind(path string) string {
	for range maxLinks {
		target, err := os.Readlink(path)
		if err != nil {
			break // no link
		}
		if !filepath.IsAbs(target) {
			// Not filepath.Join: links in front of a ".." decide what it means.
			target = filepath.Dir(path) + string(filepath.Separator) + target
		}
		path = target
	}
	return path
}

// failed returns an error with the path of the file instead of its temporary name.
func (f *File) failed(err error) error {
	if err == nil {
		return nil
	}
	return &fs.PathError{Op: "writing", Path: f.path, Err: cause(err)}
}

// cause returns an error without the operation and the path.
func cause(err error) error {
	var path *fs.PathError
	var link *os.LinkError
	switch {
	case errors.As(err, &path):
		return path.Err
	case errors.As(err, &link):
		return link.Err
	}
	return err
}

// longestName leaves room for a prefix and a suffix: file systems take 255 bytes.
const longestName = 200

// notInNames matches what some file systems do not allow in a name.
var notInNames = regexp.MustCompile(`[^A-Za-z0-9._-]`)

// Place returns the absolute path of a file with its links followed as far as it exists.
func Place(path string) string {
	if followed, err := filepath.EvalSymlinks(path); err == nil {
		path = followed
	}
	if absolute, err := filepath.Abs(path); err == nil {
		path = absolute
	}
	return path
}

// Inside reports whether a file is in one of some directories, or next to one of some files, with links
// followed.
func Inside(path string, roots []string) bool {
	return slices.ContainsFunc(roots, func(root string) bool {
		rest, err := filepath.Rel(Place(DirectoryOf(root)), Place(path))
		return err == nil && filepath.IsLocal(rest)
	})
}

// DirectoryOf returns the path of a directory unchanged, and the directory of any other file.
func DirectoryOf(path string) string {
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		return path
	}
	return filepath.Dir(path)
}

// PlainName returns a string, such as the name of a context, for use in a file name: without characters that
// some file systems do not allow, and not too long.
func PlainName(s string) string {
	s = cmp.Or(strings.Trim(notInNames.ReplaceAllString(s, "-"), ".-"), "cluster")
	return s[:min(len(s), longestName)]
}

// foreignError reports why another user may have written a file, and the command that makes it one's own.
func foreignError(why, do string) error {
	return errors.New(why + ", so that what it would write may not be what you saw; look at it, and if you trust it: " + do)
}

// CheckOwner returns an error if another user owns an open file or directory, or can write to it. The
// superuser is trusted, and may use everybody's files. Where files have no such owners and modes it returns
// nil.
func CheckOwner(f *os.File) error {
	info, err := f.Stat()
	if err != nil {
		return err
	}
	return foreign(f.Name(), info)
}

// CheckDirectory is CheckOwner for a directory whose files together decide what is written: who can write to
// it can add a link to another file of its user, or remove one.
func CheckDirectory(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(CheckOwner(f), f.Close())
}
