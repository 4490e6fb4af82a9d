package formats_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/diff"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/evaluation"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/apply"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/apply/request"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/output"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/output/formats"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/output/internal/outputtest"
)

// isCommand reports whether the runner of GitHub Actions takes a line for a command,
// as its ActionCommand.cs does; every command has a name of letters.
func isCommand(line string) bool {
	return regexp.MustCompile(`^\s*::[A-Za-z-]+( .*?)?::`).MatchString(line) ||
		regexp.MustCompile(`##\[[A-Za-z-]+( [^\]]*)?\]`).MatchString(line)
}

// hostile is a change all of whose texts are commands.
func hostile() engine.Change {
	const command, older = "::error title=t::x", "##[error]x"
	text := "a\n  " + command + "\n" + older + "\n"
	rule := engine.RuleRef{Policy: command, Rule: older, Via: command, Origin: command}
	key := engine.ObjectKey{GroupKind: schema.GroupKind{Kind: command}, Namespace: command, Name: command + older}
	fields := func(v string) map[string]any {
		return map[string]any{command: v, older: text, "list": []any{map[string]any{"name": older, command: v}, command, older}, "text": text + v}
	}
	before, after := fields("a"), fields("b"+command)
	c := engine.Change{
		Subject: key, Before: object(before), After: object(after),
		Impacts: []engine.Impact{{Code: command, Text: command, Advice: older, Brief: older}},
	}
	for _, f := range diff.Compare(before, after, diff.Type{}) {
		f.Rule = rule
		c.Fields = append(c.Fields, f)
	}
	for _, o := range []engine.Outcome{engine.Changed, engine.Failed, engine.Skipped, engine.Unchanged, engine.NotMatched} {
		c.Steps = append(c.Steps, engine.Step{
			Rule: rule, Subject: key, Trigger: key, Outcome: o, AsCreated: true, NotIdempotent: command,
			Warnings: []engine.Warning{command, older}, Err: errors.New(text),
		})
	}
	return c
}

func TestNoWorkflowCommandsInPreviews(t *testing.T) {
	for _, format := range []string{formats.Diff, formats.Summary, formats.Table, formats.Wide, formats.Markdown} {
		for _, by := range []output.GroupBy{output.ByObject, output.ByPatch, output.ByPolicy, output.ByNamespace} {
			for _, explain := range []bool{false, true} {
				var out bytes.Buffer
				p := newPrinter(t, format, output.Options{
					Out: &out, GroupBy: by, Explain: explain, Expand: true, Hint: next("::error::x"), ContextLines: 100, ShowSecrets: true,
				})
				c, second := hostile(), hostile()
				second.Subject.Name += "2"
				summary := evaluation.NewSummary(nil)
				summary.Add(&c)
				if err := errors.Join(p.Print(output.Evaluated{Change: &c}), p.Print(output.Evaluated{Change: &second}), outputtest.End(p, *summary)); err != nil {
					t.Fatal(err)
				}
				noCommands(t, fmt.Sprintf("%s by %s, explain %v", format, by, explain), out.String())
			}
		}
	}
}

func TestNoWorkflowCommandsInWrites(t *testing.T) {
	c := hostile()
	var out bytes.Buffer
	p, err := formats.NewWrites(formats.Summary, output.Options{Out: &out}, &formats.Reports{}, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	takeover := request.Takeover{Manager: c.Subject.Name, Verdict: request.Shown, Fields: fieldpath.NewSet(fieldpath.MakePathOrDie(c.Subject.Name))}
	for _, r := range []apply.Result{
		{Key: c.Subject, Outcome: apply.Failed, Err: c.Steps[0].Err, Instead: c.Subject.Name},
		{Key: c.Subject, Outcome: apply.Applied, Takeovers: []request.Takeover{takeover}, Rules: []engine.RuleRef{c.Steps[0].Rule}},
		{Key: c.Subject, Outcome: apply.Conflicted, Err: &apply.ObjectError{Key: c.Subject, Err: &apply.ConflictError{Takeovers: []request.Takeover{takeover}}}},
	} {
		if err := p.Print(output.Written{Result: &r}); err != nil {
			t.Fatal(err)
		}
	}
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
	noCommands(t, "results", out.String())
}

func noCommands(t *testing.T, what, text string) {
	t.Helper()
	if !strings.Contains(text, "error") {
		t.Errorf("%s: nothing of the texts is shown:\n%s", what, text)
	}
	for line := range strings.Lines(text) {
		if isCommand(strings.TrimSuffix(line, "\n")) {
			t.Errorf("%s: a command: %q", what, line)
		}
	}
}
