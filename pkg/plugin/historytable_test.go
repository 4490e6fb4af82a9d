package plugin_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/journal"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/output/formats"
)

func TestHistoryTableEndsWithTheNextCommands(t *testing.T) {
	whole := journal.Run{ID: "whole", Journal: "whole.jsonl", Planned: 2, Applied: 2, Complete: true}
	cutOff := journal.Run{ID: "cut", Journal: "cut off.jsonl", Planned: 2, Applied: 1, Left: 1}
	undone := journal.Run{ID: "undone", Journal: "undone.jsonl", Planned: 2, Applied: 2, Undone: 2}
	undo := journal.Run{ID: "undo", Journal: "undo.jsonl", Undoes: "undone", Planned: 2, Applied: 1, Left: 1}
	hostile := journal.Run{ID: "a\n\x1b[2Jb", Journal: "x.jsonl", Applied: 1}
	for name, c := range map[string]struct {
		runs []journal.Run
		want []string
	}{
		"a whole run can be taken back":                {[]journal.Run{whole}, []string{"To take back whole: mutate undo whole.jsonl"}},
		"the latest, not those before":                 {[]journal.Run{whole, cutOff}, []string{"To continue with cut: mutate apply --resume 'cut off.jsonl'", "To take back whole: mutate undo whole.jsonl"}},
		"one that was taken back has nothing left":     {[]journal.Run{undone}, nil},
		"taking back is neither gone on with nor back": {[]journal.Run{undo, undone}, nil},
		"what a file says stays in its line":           {[]journal.Run{hostile}, []string{`To take back a \x1b[2Jb: mutate undo x.jsonl`}},
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
			if strings.Contains(text, "\x1b") {
				t.Errorf("a control character reaches the terminal: %q", text)
			}
		})
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
	p := plugin.HistoryPrinter{Out: &b, Format: format, Where: "state/kubectl-mutate", Resume: "mutate apply", Undo: "mutate undo"}
	if err := p.Print(runs); err != nil {
		t.Fatal(err)
	}
	return b.String()
}
