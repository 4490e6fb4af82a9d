package file_test

import (
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/report/file"
)

func written(t *testing.T, path, text string) *file.File {
	t.Helper()
	f, err := file.New(path, file.Shared)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(f, text); err != nil {
		t.Fatal(err)
	}
	return f
}

func holds(t *testing.T, path, want string) {
	t.Helper()
	if got, err := os.ReadFile(path); err != nil || string(got) != want {
		t.Errorf("%s: got %q, %v, want %q", path, got, err, want)
	}
}

func names(t *testing.T, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, e := range entries {
		out = append(out, e.Name())
	}
	return out
}

func TestAFileIsThereWhenItIsWhole(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "report")
	if err := os.WriteFile(path, []byte("old"), 0o600); err != nil {
		t.Fatal(err)
	}
	f := written(t, path, "new")
	holds(t, path, "old")
	if err := f.Commit(); err != nil {
		t.Fatal(err)
	}
	if err := f.Discard(); err != nil {
		t.Error(err)
	}
	holds(t, path, "new")
	if info, _ := os.Stat(path); info.Mode().Perm() != file.Shared {
		t.Errorf("mode %v", info.Mode())
	}
	if _, err := io.WriteString(f, "more"); err == nil {
		t.Error("written to after its end")
	}
	if got := names(t, dir); len(got) != 1 {
		t.Errorf("left behind: %v", got)
	}
}

func TestADiscardedFileWasNeverThere(t *testing.T) {
	dir := t.TempDir()
	f := written(t, filepath.Join(dir, "report"), "half")
	if err := f.Discard(); err != nil {
		t.Fatal(err)
	}
	if got := names(t, dir); len(got) != 0 {
		t.Errorf("left behind: %v", got)
	}
}

func TestNothingIsCreatedBeforeTheFirstByte(t *testing.T) {
	dir := t.TempDir()
	f, err := file.New(filepath.Join(dir, "report"), file.Private)
	if err != nil || len(names(t, dir)) > 0 {
		t.Errorf("%v, %v", names(t, dir), err)
	}
	if err := f.Commit(); err != nil {
		t.Error(err)
	}
	holds(t, filepath.Join(dir, "report"), "")
}

func TestALinkStaysALink(t *testing.T) {
	dir := t.TempDir()
	target, link := filepath.Join(dir, "target"), filepath.Join(dir, "link")
	if err := os.WriteFile(target, []byte("a longer text"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(target, link); err != nil {
		t.Fatal(err)
	}
	if err := written(t, link, "new").Commit(); err != nil {
		t.Fatal(err)
	}
	holds(t, target, "new")
	if info, _ := os.Lstat(link); info.Mode()&fs.ModeSymlink == 0 {
		t.Error("the link is gone")
	}
}

func TestWhatCannotBeWrittenIsRefusedAtOnce(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "file"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{dir, filepath.Join(dir, "missing", "report"), filepath.Join(dir, "file", "report")} {
		if _, err := file.New(path, file.Shared); err == nil {
			t.Errorf("%s: accepted", path)
		}
	}
}
