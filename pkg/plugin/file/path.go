package file

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Why nothing can be written under a name.
var (
	errDirectory = errors.New("is a directory")
	errIrregular = errors.New("not an ordinary file")
)

// isStream tells whether a path names what this process has open already. Behind
// it may be an ordinary file, to which others write as well.
func isStream(path string) bool {
	path = filepath.ToSlash(filepath.Clean(path))
	return slices.Contains([]string{"/dev/stdout", "/dev/stderr"}, path) ||
		strings.HasPrefix(path, "/dev/fd/") || strings.HasPrefix(path, "/proc/self/fd/")
}

// maxLinks is more than an operating system follows.
const maxLinks = 255

// behind is what a path leads to. Unlike filepath.EvalSymlinks it also follows a
// link to a file that is still to be made.
func behind(path string) string {
	for range maxLinks {
		target, err := os.Readlink(path)
		if err != nil {
			break // no link
		}
		if !filepath.IsAbs(target) {
			// Not filepath.Join: what ".." means is up to links in front of it.
			target = filepath.Dir(path) + string(filepath.Separator) + target
		}
		path = target
	}
	return path
}

// told says which file an error is of. That it went by another name meanwhile
// helps nobody.
func (f *File) told(err error) error {
	if err == nil {
		return nil
	}
	return &fs.PathError{Op: "writing", Path: f.path, Err: cause(err)}
}

// cause is an error without the operation and the path that it failed for.
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
