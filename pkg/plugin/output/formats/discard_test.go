package formats

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/output"
)

// A run that breaks off leaves no report, and no half of one.
func TestReportsDiscard(t *testing.T) {
	for _, format := range reportFormats() {
		t.Run(format.name, func(t *testing.T) {
			dir := t.TempDir()
			reports, err := OpenReports([]string{format.name + "=" + filepath.Join(dir, "report")}, ReportOptions{})
			if err != nil {
				t.Fatal(err)
			}
			c := engine.Change{Steps: []engine.Step{{Rule: engine.RuleRef{Policy: "p"}, Outcome: engine.Failed}}}
			c.Subject.Kind, c.Subject.Name = "ConfigMap", "settings"
			for range 2000 { // more than a buffer holds
				if err := reports.Print(output.Evaluated{Change: &c}); err != nil {
					t.Fatal(err)
				}
			}
			if err := reports.Discard(); err != nil {
				t.Error(err)
			}
			if left, _ := os.ReadDir(dir); len(left) > 0 {
				t.Errorf("left behind: %v", left)
			}
		})
	}
}
