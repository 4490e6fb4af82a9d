package completion

import (
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericclioptions"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/journal"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/redact"
)

// completer completes what only the cluster, the kubeconfig or the policies know. It returns
// nothing on errors.
type completer struct{ Options }

// completionTimeout bounds how long a shell waits.
const completionTimeout = 3 * time.Second

// Options are the options of Add.
type Options struct {
	Config *genericclioptions.ConfigFlags
	// Values has the values of flags, by their names.
	Values map[string][]string
	// Listed are the flags whose help, or type, lists their values.
	Listed []string
	// Objects are the commands whose arguments are TYPE and TYPE/NAME. Other are those that
	// complete their arguments themselves, or take files.
	Objects, Other []string
	// Runs is the command whose first argument is the ID of a run, or its journal.
	Runs string
}

// Add registers completions for the flags and arguments of a command and its subcommands.
func Add(root *cobra.Command, o Options) {
	x := completer{o}
	complete(root, "namespace", x.namespaces)
	complete(root, "context", x.ofConfig(contexts))
	complete(root, "cluster", x.ofConfig(clusters))
	complete(root, "user", x.ofConfig(users))
	x.below(root)
}

// below registers the completions of subcommands.
func (x completer) below(parent *cobra.Command) {
	for _, c := range parent.Commands() {
		for name, values := range x.Values {
			complete(c, name, cobra.FixedCompletions(values, nothing))
		}
		for _, name := range x.Listed {
			complete(c, name, listedValues(name))
		}
		complete(c, "contexts", x.severalContexts)
		complete(c, "namespaces", several(x.namespaces))
		complete(c, "only", several(x.rules))
		complete(c, "skip", several(x.rules))
		complete(c, "resume", func(_ *cobra.Command, _ []string, begun string) ([]string, cobra.ShellCompDirective) {
			return ofRuns(begun, func(r *journal.Run) string { // those that were cut off
				if !r.Resumable() {
					return ""
				}
				return r.Name()
			})
		})
		switch {
		case slices.Contains(x.Objects, c.Name()):
			c.ValidArgsFunction = harmless(x.objects)
		case c.Name() == x.Runs:
			c.ValidArgsFunction = harmless(x.runs)
		case !slices.Contains(x.Other, c.Name()):
			c.ValidArgsFunction = cobra.NoFileCompletions
		}
		x.below(c)
	}
}

// complete registers a completion where the command has the flag.
func complete(c *cobra.Command, name string, values cobra.CompletionFunc) {
	if c.Flags().Lookup(name) == nil && c.PersistentFlags().Lookup(name) == nil {
		return
	}
	if err := c.RegisterFlagCompletionFunc(name, harmless(values)); err != nil {
		panic(err) // the flag is there, and has no other completion
	}
}

// special are characters that a shell acts on, some of which it expands when it completes:
// compgen, which completes with older versions of cobra, does.
const special = "`$\"'\\;&|<>(){}[]*?!#^"

// harmless leaves out what does not begin as it was typed, names with control characters, and those that a shell would take for more
// than a word: they come from clusters and files.
func harmless(values cobra.CompletionFunc) cobra.CompletionFunc {
	return func(c *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
		out, directive := values(c, args, begun)
		return slices.DeleteFunc(slices.Clone(out), func(text string) bool {
			name, description, _ := strings.Cut(text, "\t")
			return name == "" || !strings.HasPrefix(text, begun) || strings.Contains("-~=", name[:1]) || strings.ContainsAny(text, special) || redact.EscapeLine(name+description) != name+description
		}), directive
	}
}

// listedValues completes the values that the help of a flag lists. One that ends with "=" is
// followed by a file or by what only the user knows.
func listedValues(name string) cobra.CompletionFunc {
	return func(c *cobra.Command, _ []string, begun string) ([]string, cobra.ShellCompDirective) {
		if format, _, more := strings.Cut(begun, "="); more {
			if name == "report" || strings.HasSuffix(format, "-file") {
				return nil, cobra.ShellCompDirectiveDefault
			}
			return nil, nothing
		}
		values := slices.DeleteFunc(listed(c, name), func(text string) bool { return !strings.HasPrefix(text, begun) })
		if slices.ContainsFunc(values, func(text string) bool { return strings.HasSuffix(text, "=") }) {
			return values, nothing | cobra.ShellCompDirectiveNoSpace
		}
		return values, nothing
	}
}

// listed returns the values of a flag that its help, or its type, lists.
func listed(c *cobra.Command, name string) []string {
	f := c.Flag(name)
	values := strings.Split(f.Value.Type(), "|")
	if _, list, ok := strings.Cut(f.Usage, "one of "); ok {
		list, _, _ = strings.Cut(list, ".")
		values = strings.Split(list, ", ")
	} else if len(values) == 1 {
		values = strings.Split(f.Value.Type(), ", ")
	}
	if name == "report" { // FORMAT=FILE
		for i := range values {
			values[i] += "="
		}
	}
	return values
}

// runs are the IDs of those that history lists, the latest first. Journals that are
// kept elsewhere are files, and so is anything that begins no ID. Objects follow.
func (x completer) runs(c *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return x.objects(c, args, begun)
	}
	return ofRuns(begun, func(r *journal.Run) string { return r.ID })
}

// ofRuns are the names of the runs that have one, or else files.
func ofRuns(begun string, name func(*journal.Run) string) ([]string, cobra.ShellCompDirective) {
	directory, err := journal.Directory()
	if err != nil {
		return nil, cobra.ShellCompDirectiveDefault
	}
	runs, err := journal.Runs(directory, "", func(string, error) {})
	if err != nil {
		return nil, cobra.ShellCompDirectiveDefault
	}
	var out []string
	for i := range runs {
		if text := name(&runs[i]); text != "" && strings.HasPrefix(text, begun) {
			out = append(out, text+"\t"+runs[i].Started.UTC().Format(time.RFC3339)+" "+runs[i].Context)
		}
	}
	if len(out) == 0 {
		return nil, cobra.ShellCompDirectiveDefault
	}
	return out, nothing | cobra.ShellCompDirectiveKeepOrder
}
