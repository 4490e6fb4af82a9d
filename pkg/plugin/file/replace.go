package file

import (
	"errors"
	"io/fs"
)

// Check tells, before a run, whether Replace can be expected to work. It leaves
// nothing behind. The error is a *fs.PathError.
func Check(path string) error {
	_, err := ordinary(path, Private)
	return err
}

// Replace writes a whole file, or leaves what was there. A device or a pipe is
// refused: what is written is there for others to read later. The error is a
// *fs.PathError.
func Replace(path string, mode fs.FileMode, text []byte) error {
	f, err := ordinary(path, mode)
	if err != nil {
		return err
	}
	if _, err := f.Write(text); err != nil {
		return f.told(errors.Join(err, f.Discard()))
	}
	return f.Commit()
}

func ordinary(path string, mode fs.FileMode) (*File, error) {
	f, err := New(path, mode)
	if err == nil && f.direct {
		return nil, f.told(errIrregular)
	}
	return f, err
}
