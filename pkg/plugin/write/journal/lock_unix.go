//go:build unix

package journal

import (
	"errors"
	"os"
	"syscall"
)

// lockFile locks a file for this process, which ends with it.
func lockFile(f *os.File) error {
	err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return errLocked
	}
	return err
}
