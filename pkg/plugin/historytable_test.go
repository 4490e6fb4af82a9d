package plugin_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/kubectl-mutate/kubectl-mutate/internal/hostile"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/output/formats"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/undo"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/write/journal"
)

// What journals say stays in its line, and acts on nothing.
func TestHistoryOfHostileJournals(t *testing.T) {
	run := func(text string) []journal.Run {
		return []journal.Run{
			{ID: text, Context: text, Command: text, Journal: text, Planned: 2, Applied: 1, Written: 1, Left: 1},
			{ID: text, Context: text, Command: text, Undoes: text, Journal: text},
		}
	}
	for _, format := range []string{formats.Table, formats.Name, formats.JSON, formats.YAML} {
		lines := strings.Count(printedHistory(t, format, run("plain")), "\n")
		for _, of := range hostile.Texts() {
			text := printedHistory(t, format, run(of.Text))
			err := hostile.Terminal(text)
			switch format {
			case formats.Table:
				err = errors.Join(err, hostile.Lines(text, lines), hostile.Runner(text), hostile.Legible(text))
			case formats.Name:
				err = errors.Join(err, hostile.Lines(text, lines))
			case formats.JSON:
				err = errors.Join(err, json.Unmarshal([]byte(text), &map[string]any{}))
			case formats.YAML:
				err = errors.Join(err, yaml.Unmarshal([]byte(text), &map[string]any{}))
			}
			if err != nil {
				t.Errorf("%s, %s %.80q: %v", format, of.Class, of.Text, err)
			}
		}
	}
}

func printedHistory(t *testing.T, format string, runs []journal.Run) string {
	t.Helper()
	var b strings.Builder
	p := undo.HistoryPrinter{Out: &b, Format: format, Where: "state/kubectl-mutate", Resume: "mutate apply", Undo: "mutate undo"}
	if err := p.Print(runs); err != nil {
		t.Fatal(err)
	}
	return b.String()
}
