//go:build unix

package file_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/file"
)

func TestUmask(t *testing.T) {
	defer syscall.Umask(syscall.Umask(0))
	for mask, want := range map[int]map[fs.FileMode]fs.FileMode{
		0o000: {file.Shared: 0o644, file.Private: 0o600},
		0o022: {file.Shared: 0o644, file.Private: 0o600},
		0o027: {file.Shared: 0o640, file.Private: 0o600},
		0o077: {file.Shared: 0o600, file.Private: 0o600},
	} {
		syscall.Umask(mask)
		for mode, want := range want {
			path := filepath.Join(t.TempDir(), "file")
			if err := file.Replace(path, mode, []byte("new")); err != nil {
				t.Fatal(err)
			}
			if info, err := os.Stat(path); err != nil || info.Mode().Perm() != want {
				t.Errorf("mode %o with umask %03o: %v, %v; want %o", mode, mask, info.Mode(), err, want)
			}
		}
	}
}

// Nothing is replaced that the path does not name.
func TestReplaceFollowsNoLink(t *testing.T) {
	dir := t.TempDir()
	target, link := filepath.Join(dir, "target"), filepath.Join(dir, "link")
	if err := os.WriteFile(target, []byte("old"), 0o600); err != nil {
		t.Fatal(err)
	}
	for to, path := range map[string]string{target: link, "/nothing/there": filepath.Join(dir, "dangling"), link: filepath.Join(dir, "again")} {
		if err := os.Symlink(to, path); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"link", "again"} {
		path := filepath.Join(dir, name)
		for _, mode := range []fs.FileMode{file.Private, file.Shared} {
			for what, err := range map[string]error{"Check": file.Check(path, mode), "Replace": file.Replace(path, mode, []byte("new"))} {
				if !failedFor(err, path) {
					t.Errorf("%s %s with mode %o: %v", what, name, mode, err)
				}
			}
		}
	}
	if err := file.Replace(filepath.Join(dir, "dangling"), file.Private, nil); err == nil {
		t.Error("a link to nothing was followed")
	}
	holds(t, target, "old")
}
