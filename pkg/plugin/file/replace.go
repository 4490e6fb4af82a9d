package file

import (
	"errors"
	"io/fs"
	"os"
)

// Check returns an error, a *fs.PathError, if Replace would fail as things are. It leaves
// nothing behind.
func Check(path string, mode fs.FileMode) error {
	_, err := regular(path, mode)
	return err
}

// Replace writes a whole file, or leaves what was there. It fails for a device or a pipe:
// what is written is for others to read later. It follows no link, since it is to replace
// nothing that its path does not name. The error is a *fs.PathError.
func Replace(path string, mode fs.FileMode, text []byte) error {
	f, err := regular(path, mode)
	if err != nil {
		return err
	}
	if _, err := f.Write(text); err != nil {
		return f.failed(errors.Join(err, f.Discard()))
	}
	return f.Commit()
}

func regular(path string, mode fs.FileMode) (*File, error) {
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
