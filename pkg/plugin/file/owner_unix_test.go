//go:build unix

package file

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

func TestForeign(t *testing.T) {
	path := filepath.Join(t.TempDir(), "it's a plan")
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	owner := int(info.Sys().(*syscall.Stat_t).Uid)
	pipe := filepath.Join(t.TempDir(), "it's a plan")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name string
		user int
		mode fs.FileMode
		want string
	}{
		{"one's own", owner, 0o600, ""},
		{"one's own, which others read", owner, 0o644, ""},
		{"the superuser", 0, 0o600, ""},
		{"the group writes", owner, 0o660, "others can write to it (mode 0660)"},
		{"all write", owner, 0o646, "others can write to it (mode 0646)"},
		{"all write, and the superuser reads", 0, 0o666, "others can write to it (mode 0666)"},
	} {
		t.Run(c.name, func(t *testing.T) {
			checkForeign(t, path, c.user, c.mode, c.want)
			checkForeign(t, pipe, c.user, c.mode, c.want)
		})
	}
	if owner == 0 && os.Chown(path, 7, 7) != nil {
		t.Skip("files cannot be given away")
	}
	if owner == 0 {
		owner = 7
	}
	checkForeign(t, path, owner+1, 0o600, "it belongs to another user")
	checkForeign(t, path, 0, 0o600, "")
}

func checkForeign(t *testing.T, path string, user int, mode fs.FileMode, want string) {
	t.Helper()
	if err := os.Chmod(path, mode); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	switch got := foreignTo(user, path, info); {
	case want == "" && got != nil:
		t.Errorf("got %v", got)
	case want != "" && (got == nil || !strings.HasPrefix(got.Error(), want) || !strings.Contains(got.Error(), `it'\''s a plan'`)):
		t.Errorf("got %v, want %s, and a command for it", got, want)
	}
}
