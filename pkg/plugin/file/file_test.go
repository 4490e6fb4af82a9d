package file_test

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/file"
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

func TestCommitReplaces(t *testing.T) {
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

func TestNewCreatesNothing(t *testing.T) {
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

// A link stays, whatever is behind it, also if nothing is yet.
func TestCommitFollowsLinks(t *testing.T) {
	for _, tt := range []struct {
		name, target string
		there        bool
	}{
		{"to a file", "target", true},
		{"to nothing yet", "target", false},
		{"to a link to nothing yet", "second", false},
		{"through a link to a directory", filepath.Join("linked", "..", "target"), false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			target, link := filepath.Join(dir, "sub", "target"), filepath.Join(dir, "sub", "link")
			if err := os.MkdirAll(filepath.Join(dir, "sub", "deep"), 0o700); err != nil {
				t.Fatal(err)
			}
			for name, to := range map[string]string{"link": tt.target, "second": "target", "linked": "deep"} {
				if err := os.Symlink(to, filepath.Join(dir, "sub", name)); err != nil {
					t.Skip(err)
				}
			}
			if tt.there {
				if err := os.WriteFile(target, []byte("a longer text"), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			if err := written(t, link, "new").Commit(); err != nil {
				t.Fatal(err)
			}
			holds(t, target, "new")
			if info, _ := os.Lstat(link); info.Mode()&fs.ModeSymlink == 0 {
				t.Error("the link is gone")
			}
			if got := names(t, filepath.Join(dir, "sub")); len(got) != 5 {
				t.Errorf("left behind: %v", got)
			}
		})
	}
}

// refused has names of files in dir that cannot be written, each with the reason.
func refused(t *testing.T, dir string) map[string]string {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, "file"), []byte("old"), 0o600); err != nil {
		t.Fatal(err)
	}
	all := map[string]string{
		dir:                                     "is a directory",
		filepath.Join(dir, "missing", "report"): "no such file or directory",
		filepath.Join(dir, "file", "report"):    "not a directory",
		filepath.Join(dir, strings.Repeat("x", 300)): "file name too long",
	}
	if err := os.Symlink("loop", filepath.Join(dir, "loop")); err == nil {
		all[filepath.Join(dir, "loop")] = "too many levels of symbolic links"
	}
	if err := os.Mkdir(filepath.Join(dir, "closed"), 0o500); err != nil {
		t.Fatal(err)
	}
	if os.Geteuid() > 0 { // root may write everywhere
		all[filepath.Join(dir, "closed", "report")] = "permission denied"
	}
	return all
}

func TestRefused(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the reasons are worded otherwise")
	}
	dir := t.TempDir()
	all := refused(t, dir)
	before := names(t, dir)
	for path, reason := range all {
		_, opened := file.New(path, file.Shared)
		for what, err := range map[string]error{"New": opened, "Check": file.Check(path, file.Shared), "Replace": file.Replace(path, file.Shared, nil)} {
			if !failedFor(err, path) || err.Error() != "writing "+path+": "+reason {
				t.Errorf("%s: got %v, want %q", what, err, reason)
			}
		}
	}
	if after := names(t, dir); !slices.Equal(before, after) {
		t.Errorf("left behind: %v, want %v", after, before)
	}
	holds(t, filepath.Join(dir, "file"), "old")
}

// What is written to a device cannot be read later.
func TestReplaceADevice(t *testing.T) {
	if err := file.Check(os.DevNull, file.Private); !failedFor(err, os.DevNull) {
		t.Errorf("got %v", err)
	}
	if err := file.Replace(os.DevNull, file.Private, nil); !failedFor(err, os.DevNull) {
		t.Errorf("got %v", err)
	}
	if err := written(t, os.DevNull, "report").Commit(); err != nil {
		t.Error(err)
	}
}

// failedFor reports whether an error names this file once.
func failedFor(err error, path string) bool {
	var failed *fs.PathError
	return errors.As(err, &failed) && failed.Path == path && strings.Count(err.Error(), path) == 1
}

func TestPlainName(t *testing.T) {
	long := strings.Repeat("policy-", 18) // of a policy and its rule, which may have 63 letters each
	for text, want := range map[string]string{
		"prod":                    "prod",
		"-p":                      "p",
		"../etc/passwd":           "etc-passwd",
		"arn:aws:eks/prod_1.eu":   "arn-aws-eks-prod_1.eu",
		"":                        "cluster",
		"$(x)\n":                  "x",
		long + "a":                long + "a",
		strings.Repeat("b", 1000): strings.Repeat("b", 200),
	} {
		if got := file.PlainName(text); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}
