package preview

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/metrics"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/process"
)

// Numbers are written however a run ends, and a run whose numbers are lost is not
// reported as complete.
func TestMetering(t *testing.T) {
	broke := errors.New("broke off")
	file := filepath.Join(t.TempDir(), "run.prom")
	for name, c := range map[string]struct {
		file       string
		code, want int
		err        error
	}{
		"written":                   {file, process.ExitChanges, process.ExitChanges, nil},
		"written after an error":    {file, process.ExitNothing, process.ExitNothing, broke},
		"lost":                      {filepath.Join(file, "x"), process.ExitOK, process.ExitIncomplete, nil},
		"lost after an error":       {filepath.Join(file, "x"), process.ExitNothing, process.ExitNothing, broke},
		"lost when some was broken": {filepath.Join(file, "x"), process.ExitIncomplete, process.ExitIncomplete, broke},
	} {
		t.Run(name, func(t *testing.T) {
			if err := os.WriteFile(file, nil, 0o600); err != nil {
				t.Fatal(err)
			}
			code, err := Metering{Run: metrics.New("preview", "v1"), File: c.file}.Finish(c.code, c.err)
			lost := c.file != file
			if code != c.want || (err != nil) != (lost || c.err != nil) || (c.err != nil && !errors.Is(err, c.err)) {
				t.Errorf("exit code %d, error %v", code, err)
			}
			if content, err := os.ReadFile(file); err != nil || strings.Contains(string(content), "# EOF") == lost {
				t.Errorf("%q, %v", content, err)
			}
		})
	}
	if code, err := (Metering{}).Finish(process.ExitChanges, broke); code != process.ExitChanges || !errors.Is(err, broke) {
		t.Errorf("without --metrics: %d, %v", code, err)
	}
}
