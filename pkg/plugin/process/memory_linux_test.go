package process

import (
	"os"
	"path/filepath"
	"testing"
)

func TestGroupLimit(t *testing.T) {
	mounted := t.TempDir()
	for path, text := range map[string]string{"kubepods/pod/memory.max": "1000\n", "kubepods/memory.max": "max\n", "memory.max": "5000\n"} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(mounted, path)), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(mounted, path), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for groups, want := range map[string]int64{
		"":                           9000,
		"rubbish\n4:memory:/a\n":     9000,
		"0::/\n":                     5000,
		"0::/kubepods/pod\n":         1000,
		"0::/kubepods\n":             5000,
		"0::/not/there\n":            5000,
		"0::/../../kubepods/pod/a\n": 1000,
	} {
		if got := groupLimit(mounted, groups, 9000); got != want {
			t.Errorf("groupLimit(%q) = %d, want %d", groups, got, want)
		}
	}
}
