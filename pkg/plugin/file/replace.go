package file

import (
	"errors"
	"io/fs"
)

// Check returns an error, a *fs.PathError, if Replace would fail as things are. It leaves
// nothing behind.
func Check(path string) error {
	_, err := regular(path, Private)
	return err
}

// Replace writes a whole file, or leaves what was there. It fails for a device or a pipe:
// what is written is for others to read later. The error is a *fs.PathError.
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
	if err == nil && f.direct {
		return nil, f.failed(errIrregular)
	}
	return f, err
}
