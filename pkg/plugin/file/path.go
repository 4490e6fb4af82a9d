package file

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Why a path cannot be written.
var (
	errDirectory = errors.New("is a directory")
	errIrregular = errors.New("not a regular file")
	errLink      = errors.New("it is a link, which is not followed: name the file itself")
)

// isStream reports whether a path names a file that this process has open already. It
// may be a regular file to which others write as well.
func isStream(path string) bool {
	path = filepath.ToSlash(filepath.Clean(path))
	return slices.Contains([]string{"/dev/stdout", "/dev/stderr"}, path) ||
		strings.HasPrefix(path, "/dev/fd/") || strings.HasPrefix(path, "/proc/self/fd/")
}

// maxLinks is more than an operating system follows.
const maxLinks = 255

// behind returns what a path leads to. Unlike filepath.EvalSymlinks it also follows a
// link to a file that does not exist yet.
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

// failed returns an error with the path of the file, and not with its temporary name.
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

// longestName leaves room for what is put before and behind a name: file systems take 255 bytes.
const longestName = 200

// PlainName returns a name for a file that contains a text, such as the name of a context: without what some
// file systems do not allow, and not too long.
func PlainName(s string) string {
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
