package preview

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/flags"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/output"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/wording"
)

// ApplyExisting is the name of the command.
const ApplyExisting = "apply-existing"

// hints returns the commands that a preview may suggest, with its arguments and flags; none that would read
// standard input again.
func (f *Flags) hints(c *cobra.Command, args []string) *output.HintCollector {
	out := &output.HintCollector{Selectors: f.Objects.SelectorFlags()}
	saved := c.Flags().Changed("save")
	spent := f.spent()
	if !f.Objects.Offline() && !f.MustFind && (saved || !spent) {
		out.Apply = NextCommand(c, args)
	}
	if !f.Objects.Offline() && !spent {
		out.Fix = FixCommand(c, &f.Policies)
	}
	if !f.Explain && !spent {
		out.Explain = ExplainCommand(c, []string{c.Name()}, append(quoteAll(args), "--explain"))
		named := quoteAll(args)
		if len(named) == 0 {
			named = []string{"TYPE/NAME"}
		}
		if !f.Contexts.Given() && out.Selectors == "" { // explain is for one cluster, and takes selected objects
			out.ExplainOne = ExplainCommand(c, []string{"explain"}, named)
		}
	}
	return out
}

// spent reports whether the command reads standard input, which cannot be read again.
func (f *Flags) spent() bool {
	return slices.Contains(slices.Concat(f.Policies.Paths, f.Objects.Filenames, f.Objects.World), "-")
}

// NextCommand returns the apply-existing command that makes the changes of a preview: the same arguments and
// flags, except those for the output.
func NextCommand(preview *cobra.Command, args []string) string {
	if save := preview.Flag("save"); save != nil && save.Changed {
		return PlanCommand(preview.Root(), save.Value.String())
	}
	words := append([]string{preview.Parent().CommandPath(), ApplyExisting}, quoteAll(args)...)
	words = append(words, flags.Typed(preview.Flags(), "output", "query", "template", "report", "write-reports",
		"exit-code", "show-secrets", "explain", "metrics",
		"color", "group-by", "list-all", "context-lines", "quiet", "validate", "expand", "skip-managed")...)
	return strings.Join(words, " ")
}

// FixCommand returns the fix command with the policies of a command, for manifests that the user has to
// name; empty unless the policies are files.
func FixCommand(c *cobra.Command, policies *flags.Policies) string {
	if len(policies.Paths) == 0 || policies.FromCluster || slices.Contains(policies.Paths, "-") {
		return ""
	}
	var without []string
	c.Flags().VisitAll(func(f *pflag.Flag) {
		if !slices.Contains(
			[]string{"policy", "only", "skip", "strict", "values", "assume-binding", "allow-unknown-kinds"}, f.Name) {
			without = append(without, f.Name)
		}
	})
	words := append([]string{c.Parent().CommandPath(), "fix"}, flags.Typed(c.Flags(), without...)...)
	return strings.Join(append(words, "-f", "MANIFESTS"), " ")
}

// ExplainCommand returns a command that explains why objects of a preview do not change.
func ExplainCommand(preview *cobra.Command, command, args []string) string {
	words := slices.Concat([]string{preview.Parent().CommandPath()}, command, args)
	without := []string{
		"output", "query", "template", "report", "write-reports", "exit-code", "save", "explain", "metrics",
		"quiet", "validate", "max-objects", "percent", "percent-seed", "shard", "watch", "metrics-listen",
	}
	if command[0] != preview.Name() { // explain is for one cluster
		without = append(without, "contexts", "max-clusters-at-once", "skip-managed")
	}
	words = append(words, flags.Typed(preview.Flags(), without...)...)
	return strings.Join(words, " ")
}

// PlanCommand returns the apply-existing command for a plan, with the flags that choose a cluster.
func PlanCommand(root *cobra.Command, file string) string {
	words := []string{root.CommandPath(), ApplyExisting, "--plan", wording.ShellQuote(file)}
	words = append(words, flags.Typed(root.PersistentFlags(), "namespace")...) // the plan has it
	return strings.Join(words, " ")
}

func quoteAll(words []string) []string {
	out := make([]string, len(words))
	for i, w := range words {
		out[i] = wording.ShellQuote(w)
	}
	return out
}
