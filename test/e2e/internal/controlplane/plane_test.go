package controlplane

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// fakeAssets are programs that each do what the script says.
func fakeAssets(t *testing.T, script string) Assets {
	t.Helper()
	if _, err := os.Stat("/bin/sh"); err != nil {
		t.Skip("the fake programs are shell scripts: ", err)
	}
	assets := Assets(t.TempDir())
	for _, name := range []string{"etcd", "kube-apiserver", "kubectl"} {
		if err := os.WriteFile(assets.Program(name), []byte("#!/bin/sh\n"+script+"\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return assets
}

// leftovers is what is left of planes in the temporary directory.
func leftovers(t *testing.T) []string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(os.TempDir(), "controlplane-*"))
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func TestStartReportsWhyAProgramEnded(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	_, err := Start(t.Context(), fakeAssets(t, "echo no disk left; exit 1"))
	if err == nil || !strings.Contains(err.Error(), "ended early:\nno disk left") {
		t.Errorf("error is %v, want the end of the log", err)
	}
	if left := leftovers(t); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

func TestStartGivesUpAndLeavesNothingRunning(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	pids := filepath.Join(t.TempDir(), "pids")
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	_, err := Start(ctx, fakeAssets(t, "echo $$ >> "+pids+"; exec sleep 60"))
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("error is %v, want that of the context", err)
	}
	content, err := os.ReadFile(pids)
	if err != nil {
		t.Fatal(err)
	}
	for _, pid := range strings.Fields(string(content)) {
		if _, err := os.Stat(filepath.Join("/proc", pid)); err == nil {
			t.Errorf("process %s is still there", pid)
		}
	}
	if left := leftovers(t); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

func TestStartNamesAMissingProgram(t *testing.T) {
	assets := fakeAssets(t, "exit 0")
	if err := os.Remove(assets.Program("kubectl")); err != nil {
		t.Fatal(err)
	}
	if _, err := Start(t.Context(), assets); !errors.Is(err, os.ErrNotExist) || !strings.Contains(err.Error(), "kubectl") {
		t.Errorf("error is %v, want the missing program", err)
	}
}

func TestProgramsAreKeptByWhatTheyAreBuiltFrom(t *testing.T) {
	module := t.TempDir()
	write := func(name, content string) {
		if err := os.WriteFile(filepath.Join(module, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("go.mod", "module m")
	write("go.sum", "one")
	first, err := cacheKey(module)
	if err != nil {
		t.Fatal(err)
	}
	write("go.sum", "two")
	second, err := cacheKey(module)
	if err != nil {
		t.Fatal(err)
	}
	if first == second {
		t.Errorf("another go.sum has the same key %s", first)
	}
}
