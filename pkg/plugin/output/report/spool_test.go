package report

import (
	"fmt"
	"maps"
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"
)

// What comes in any order goes out by section, whether memory holds it or not.
func TestSpoolSections(t *testing.T) {
	for _, limit := range []int{1, 7, 100, maxHeld} {
		t.Run(fmt.Sprint(limit), func(t *testing.T) {
			t.Setenv("TMPDIR", t.TempDir())
			s := Spool{limit: limit}
			want := map[string]string{}
			for i := range 100 {
				name, text := fmt.Sprint("section", i%3), fmt.Sprint("text ", i, strings.Repeat("x", i%5), "\n")
				if err := s.Add(name, text); err != nil {
					t.Fatal(err)
				}
				want[name] += text
			}
			for name, text := range want {
				var b strings.Builder
				if err := s.Copy(&b, name); err != nil || b.String() != text {
					t.Errorf("%s: got %q, %v, want %q", name, b.String(), err, text)
				}
			}
			if onDisk := slices.ContainsFunc(slices.Collect(maps.Values(s.sections)), func(at *section) bool { return len(at.parts) > 0 }); onDisk != (limit < maxHeld) {
				t.Errorf("with a limit of %d, on disk: %t", limit, onDisk)
			}
			if left, _ := os.ReadDir(os.TempDir()); len(left) > 0 && runtime.GOOS != "windows" {
				t.Errorf("a process that is killed now leaves %v behind", left)
			}
			if err := s.Close(); err != nil {
				t.Error(err)
			}
			if left, _ := os.ReadDir(os.TempDir()); len(left) > 0 {
				t.Errorf("left behind: %v", left)
			}
		})
	}
}

func TestSpoolUnknownSection(t *testing.T) {
	var s Spool
	var b strings.Builder
	if err := s.Copy(&b, "none"); err != nil || b.Len() > 0 {
		t.Errorf("got %q, %v", b.String(), err)
	}
}
