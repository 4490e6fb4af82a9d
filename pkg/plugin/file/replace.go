package file

import (
	"errors"
	"io/fs"
	"os"
)

// Check returns an error, a *fs.PathError, if NewRegular would fail as things are. It leaves
// nothing behind.
func Check(path string, mode fs.FileMode) error {
	_, err := NewRegular(path, mode)
	return err
}

// Replace writes a whole file, or leaves what was there. It fails where NewRegular does. The error is a *fs.PathError.
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

// NewRegular is New for a file that is read later: it fails for a device or a pipe, and for a link, since it is to replace
// nothing that its path does not name.
func NewRegular(path string, mode fs.FileMode) (*File, error) {
	f, err := New(path, mode)
	if err != nil {
		return nil, err
	}
	info, err := os.Lstat(path)
	switch isLink := err == nil && info.Mode()&fs.ModeSymlink != 0; {
	case f.direct:
		return nil, f.failed(errIrregular)
	case isLink:
		return nil, f.failed(errLink)
	}
	f.place = path // also if it has become a link meanwhile
	return f, nil
}
