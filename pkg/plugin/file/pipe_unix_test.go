//go:build unix

package file_test

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// A pipe is written to; it is not replaced.
func TestCommitToAPipe(t *testing.T) {
	path := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Skip(err)
	}
	read := make(chan string)
	go func() {
		got, _ := os.ReadFile(path)
		read <- string(got)
	}()
	if err := written(t, path, "through").Commit(); err != nil {
		t.Fatal(err)
	}
	if got := <-read; got != "through" {
		t.Errorf("got %q", got)
	}
}
