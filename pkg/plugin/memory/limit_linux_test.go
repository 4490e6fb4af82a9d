package memory

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

func TestGroupLimits(t *testing.T) {
	mounted := t.TempDir()
	for path, text := range map[string]string{
		"kubepods/pod/memory.max":              "1000\n",
		"kubepods/memory.max":                  "max\n",
		"memory.max":                           "5000\n",
		"memory/a/b/memory.limit_in_bytes":     "2000\n",
		"memory/a/memory.limit_in_bytes":       "9223372036854771712\n",
		"memory/memory.limit_in_bytes":         "not a number",
		"cpu/a/b/memory.limit_in_bytes":        "1",
		"memory/kubepods/memory.limit_in_byte": "1",
	} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(mounted, path)), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(mounted, path), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for groups, want := range map[string][]int64{
		"":                                   nil,
		"rubbish\n4:memory\n":                nil,
		"0::/\n":                             {5000},
		"0::/kubepods/pod\n":                 {1000, 5000},
		"0::/not/there\n":                    {5000},
		"3:cpu:/a/b\n":                       nil,
		"4:memory:/a/b\n0::/\n":              {2000, 9223372036854771712, 5000},
		"0::/../../../kubepods/pod/../pod\n": {1000, 5000},
	} {
		if got := groupLimits(mounted, groups); !slices.Equal(got, want) {
			t.Errorf("groupLimits(%q) = %v, want %v", groups, got, want)
		}
	}
}
