package objectdiff_test

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/output/objectdiff"
)

// program writes a shell script that stands for the user's program.
func program(t *testing.T, text string) string {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("needs a shell")
	}
	path := filepath.Join(t.TempDir(), "program")
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"+text), 0o700); err != nil {
		t.Fatal(err)
	}
	return path
}

func run(t *testing.T, command string, add func(*objectdiff.External)) (string, error) {
	t.Helper()
	t.Setenv("TMPDIR", t.TempDir())
	var out bytes.Buffer
	c, err := objectdiff.FindExternal(t.Context(), command, &out, &out)
	if err != nil {
		t.Fatal(err)
	}
	add(c)
	err = c.Compare()
	if err := c.End(); err != nil {
		t.Error(err)
	}
	if left, err := os.ReadDir(os.Getenv("TMPDIR")); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
	return out.String(), err
}

// one adds an object.
func one(t *testing.T) func(*objectdiff.External) {
	return func(c *objectdiff.External) {
		if err := c.Add("v1.ConfigMap.shop.a", "old", "new"); err != nil {
			t.Fatal(err)
		}
	}
}

func TestExternalNames(t *testing.T) {
	out, err := run(t, program(t, `for f in "$1"/*; do n=$(basename "$f"); echo "$n: $(cat "$f") to $(cat "$2/$n")"; done; exit 1`), func(c *objectdiff.External) {
		for _, name := range []string{"v1.ConfigMap.shop.a", "v1.ConfigMap.shop.a", "rbac/../x:y"} {
			if err := c.Add(name, "old", "new"); err != nil {
				t.Fatal(err)
			}
		}
	})
	want := "rbac_.._x_y: old to new\nv1.ConfigMap.shop.a: old to new\nv1.ConfigMap.shop.a.2: old to new\n"
	if out != want || err != nil {
		t.Errorf("got %q, %v; want %q", out, err, want)
	}
}

func TestExternalArguments(t *testing.T) {
	out, err := run(t, program(t, "shift 2; echo \"$@\"")+" -u --color=always ;rm /etc/x --label='a'", one(t))
	if strings.TrimSpace(out) != "-u --color=always" || err != nil {
		t.Errorf("got %q, %v", out, err)
	}
}

func TestExternalExitCodes(t *testing.T) {
	command := program(t, "exit 2")
	if _, err := run(t, command, one(t)); err == nil || !strings.Contains(err.Error(), "KUBECTL_EXTERNAL_DIFF: failed to run \""+command) {
		t.Errorf("got %v", err)
	}
}

func TestFindExternalMissing(t *testing.T) {
	for _, command := range []string{"/nonexistent", "kubectl-mutate-nonexistent -u", " diff"} {
		if _, err := objectdiff.FindExternal(t.Context(), command, nil, nil); !errors.Is(err, exec.ErrNotFound) && !errors.Is(err, os.ErrNotExist) || !strings.Contains(err.Error(), "KUBECTL_EXTERNAL_DIFF") {
			t.Errorf("%q: got %v", command, err)
		}
	}
}
