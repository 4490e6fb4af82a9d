package plugin_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/kubectl-mutate/kubectl-mutate/internal/hostile"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/output/formats"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/undo"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/write/journal"
)

func TestHistoryTableEndsWithTheNextCommands(t *testing.T) {
	whole := journal.Run{ID: "whole", Journal: "whole.jsonl", Planned: 2, Applied: 2, Written: 2, Complete: true}
	cutOff := journal.Run{ID: "cut", Journal: "cut off.jsonl", Planned: 2, Applied: 1, Written: 1, Left: 1}
	undone := journal.Run{ID: "undone", Journal: "undone.jsonl", Planned: 2, Applied: 2, Written: 2, Undone: 2}
	undo := journal.Run{ID: "undo", Journal: "undo.jsonl", Undoes: "undone", Planned: 2, Applied: 1, Written: 1, Left: 1}
	for name, c := range map[string]struct {
		runs []journal.Run
		want []string
	}{
		"a whole run can be taken back":                {[]journal.Run{whole}, []string{"To take back whole: mutate undo whole.jsonl"}},
		"the latest, not those before":                 {[]journal.Run{whole, cutOff}, []string{"To continue with cut: mutate apply --resume 'cut off.jsonl'", "To take back whole: mutate undo whole.jsonl"}},
		"one that was taken back has nothing left":     {[]journal.Run{undone}, nil},
		"taking back is neither gone on with nor back": {[]journal.Run{undo, undone}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			text := printedHistory(t, formats.Table, c.runs)
			var got []string
			for _, line := range strings.Split(text, "\n") {
				if strings.HasPrefix(line, "To ") {
					got = append(got, line)
				}
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("-want +got:\n%s\n%s", diff, text)
			}
		})
	}
}

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

func TestHistoryFormats(t *testing.T) {
	noon := time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)
	runs := []journal.Run{{ID: "1", Command: "apply-existing", Started: noon, Journal: "b.jsonl", Applied: 1}, {ID: "2", Command: "undo", Started: noon, Journal: "a.jsonl"}}
	if got := printedHistory(t, formats.Name, runs); got != "b.jsonl\na.jsonl\n" {
		t.Errorf("name: %q", got)
	}
	if got := printedHistory(t, formats.Table, nil); got != "No runs in state/kubectl-mutate.\n" {
		t.Errorf("an empty table: %q", got)
	}
	var list struct {
		Kind  string        `json:"kind"`
		Items []journal.Run `json:"items"`
	}
	if err := json.Unmarshal([]byte(printedHistory(t, formats.JSON, runs)), &list); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(runs, list.Items); diff != "" || list.Kind != "RunList" {
		t.Errorf("%s, -want +got:\n%s", list.Kind, diff)
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
