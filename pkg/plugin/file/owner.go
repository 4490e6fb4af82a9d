package file

import (
	"errors"
	"os"
)

// ForeignError reports that a file may hold what another user has put there.
type ForeignError struct {
	Why string
	Do  string // a command
}

// Error says why, and what to do.
func (e *ForeignError) Error() string {
	return e.Why + ", so that what it would write may not be what you saw; look at it, and if you trust it: " + e.Do
}

// CheckOwner returns a *ForeignError if another user owns an open file or directory, or can write to
// it. The superuser is trusted, and may use the files of all users. Where files have
// no such owners and modes it returns nil.
func CheckOwner(f *os.File) error {
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if foreign := foreign(f.Name(), info); foreign != nil {
		return foreign
	}
	return nil
}

// CheckDirectory is CheckOwner for a directory whose files decide, together, what is written: who can write to it
// can add a link to another file of its user, or take one away.
func CheckDirectory(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(CheckOwner(f), f.Close())
}
