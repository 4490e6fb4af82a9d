package plugin

import (
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/kubectl-mutate/kubectl-mutate/internal/hostile"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/preview"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/redact"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/wording"
)

// Whatever flags a preview had, the commands that it says to type next understand
// those that they get.
func TestNextCommandFlags(t *testing.T) {
	_, c := previewCommand(t)
	c.Flags().VisitAll(func(f *pflag.Flag) {
		t.Run(f.Name, func(t *testing.T) {
			root, c := previewCommand(t)
			if !setSomehow(c.Flags(), f.Name) {
				t.Fatalf("no value for --%s", f.Name)
			}
			for name, command := range map[string]string{
				preview.ApplyExisting: preview.NextCommand(c, nil),
				"preview":             preview.ExplainCommand(c, []string{"preview"}, []string{"--explain"}),
				"explain":             preview.ExplainCommand(c, []string{"explain"}, []string{"TYPE/NAME"}),
			} {
				words := strings.Fields(command)
				found, flags, err := root.Find(words[1:])
				if err != nil || found.Name() != name {
					t.Fatalf("%q is no command: %v", command, err)
				}
				if err := found.ParseFlags(flags); err != nil {
					t.Errorf("%s: %v", command, err)
				}
			}
		})
	})
}

// Whatever a preview was given, a shell gives it to the next command when the line is pasted.
func TestNextCommandsArePasted(t *testing.T) {
	var lines, want strings.Builder
	for _, text := range hostile.Texts() {
		if strings.Contains(text.Text, "\x00") || strings.HasSuffix(text.Text, "\n") {
			continue // which no word holds, and which a shell cannot be given in one line
		}
		root, c := previewCommand(t)
		for _, flag := range []string{"namespace", "policy", "context"} {
			if err := c.Flags().Set(flag, text.Text); err != nil {
				t.Fatal(err)
			}
		}
		line := redact.EscapeLine("Next: " + preview.NextCommand(c, []string{text.Text}) + "; To see why: " + preview.ExplainCommand(c, []string{"preview"}, []string{wording.ShellQuote(text.Text)}) + "; " + preview.PlanCommand(root, text.Text))
		lines.WriteString(strings.ReplaceAll(strings.TrimPrefix(line, "Next: "), "; To see why: ", "; ") + "\n")
		flags := []string{"--context=" + text.Text, "-n", text.Text, "-p", text.Text}
		for _, words := range [][]string{{"apply-existing", text.Text}, {"preview", text.Text}} {
			want.WriteString(hostile.Shown(append(words, flags...)...))
		}
		want.WriteString(hostile.Shown("apply-existing", "--plan", text.Text, "--context="+text.Text))
	}
	wanted := strings.Split(want.String(), "\n")
	for shell, got := range hostile.Paste(t, "kubectl_mutate() { show \"$@\"; }\n"+strings.ReplaceAll(lines.String(), "kubectl-mutate ", "kubectl_mutate ")) {
		for i, line := range strings.Split(got, "\n") {
			if i >= len(wanted) || line != wanted[i] {
				t.Fatalf("%s: line %d is %.200q, want %.200q", shell, i, line, wanted[min(i, len(wanted)-1)])
			}
		}
		if n := strings.Count(got, "\n"); n != len(wanted)-1 {
			t.Errorf("%s: %d lines, want %d", shell, n, len(wanted)-1)
		}
	}
}

func previewCommand(t *testing.T) (root, c *cobra.Command) {
	t.Helper()
	root = NewCommand("kubectl-mutate", genericiooptions.NewTestIOStreamsDiscard(), nil)
	c, _, err := root.Find([]string{"preview"})
	if err != nil {
		t.Fatal(err)
	}
	_ = c.InheritedFlags() // adds them to its own
	return root, c
}

// setSomehow sets a flag to the first value that it takes.
func setSomehow(flags *pflag.FlagSet, name string) bool {
	for _, value := range []string{"true", "7", "7s", "x=y", "CREATE", "patch", "always", "server", "0/2", "x"} {
		if flags.Set(name, value) == nil {
			return true
		}
	}
	return false
}
