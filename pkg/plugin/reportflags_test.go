package plugin

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/spf13/cobra"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/render"
)

// A run that breaks off leaves no report, and no half of one.
func TestABrokenOffRunLeavesNoReport(t *testing.T) {
	for _, format := range reportFormats() {
		t.Run(format.name, func(t *testing.T) {
			dir := t.TempDir()
			f := ReportFlags{Reports: []string{format.name + "=" + filepath.Join(dir, "report")}}
			reports, err := f.reports(&cobra.Command{}, &wiring{}, render.Options{})
			if err != nil {
				t.Fatal(err)
			}
			c := engine.Change{Steps: []engine.Step{{Rule: engine.RuleRef{Policy: "p"}, Outcome: engine.Failed}}}
			c.Subject.Kind, c.Subject.Name = "ConfigMap", "settings"
			for range 2000 { // more than a buffer holds
				if err := reports.printers[0].Print(c); err != nil {
					t.Fatal(err)
				}
			}
			if err := reports.end(); err != nil {
				t.Error(err)
			}
			if left, _ := os.ReadDir(dir); len(left) > 0 {
				t.Errorf("left behind: %v", left)
			}
		})
	}
}
