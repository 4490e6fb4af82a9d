package completion

import (
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericclioptions"
)

// completer completes what only the cluster, the kubeconfig or the policies know.
// Whatever goes wrong there, nothing is completed.
type completer struct{ Options }

// completionTimeout bounds how long a shell waits.
const completionTimeout = 3 * time.Second

// Options say what is completed with what.
type Options struct {
	Config *genericclioptions.ConfigFlags
	// Values are those of the flags that take one of a few.
	Values map[string][]string
	// Told are the flags whose help, or type, lists their values.
	Told []string
	// Objects are the commands whose arguments are TYPE and TYPE/NAME, and Other those
	// that complete their arguments by themselves, or take files.
	Objects, Other []string
	// Runs is the command whose first argument is the ID of a run, or its journal.
	Runs string
}

// Add has the flags and the arguments of a command, and of all below it, completed.
func Add(root *cobra.Command, o Options) {
	x := completer{o}
	complete(root, "namespace", x.namespaces)
	complete(root, "context", x.contexts)
	complete(root, "cluster", x.clusters)
	complete(root, "user", x.users)
	x.below(root)
}

// below has the commands below one completed.
func (x completer) below(parent *cobra.Command) {
	for _, c := range parent.Commands() {
		for name, values := range x.Values {
			complete(c, name, fixedValues(values))
		}
		for _, name := range x.Told {
			complete(c, name, toldValues(name))
		}
		complete(c, "only", x.rules)
		complete(c, "skip", x.rules)
		complete(c, "resume", x.journals)
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
		panic(err) // the flag is there, and nobody else completes it
	}
}

func fixedValues(values []string) cobra.CompletionFunc {
	return func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		return values, cobra.ShellCompDirectiveNoFileComp
	}
}

// harmless leaves out what no shell should see: names come from clusters and files.
func harmless(values cobra.CompletionFunc) cobra.CompletionFunc {
	return func(c *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
		out, directive := values(c, args, begun)
		control := func(r rune) bool { return r != '\t' && !unicode.IsPrint(r) } // a description follows a tab
		return slices.DeleteFunc(slices.Clone(out), func(text string) bool { return strings.ContainsFunc(text, control) }), directive
	}
}

// toldValues are those that the help of a flag lists. What ends with "=" is followed
// by more: a file, or what only the user knows.
func toldValues(name string) cobra.CompletionFunc {
	return func(c *cobra.Command, _ []string, begun string) ([]string, cobra.ShellCompDirective) {
		if format, _, more := strings.Cut(begun, "="); more {
			if name == "report" || strings.HasSuffix(format, "-file") {
				return nil, cobra.ShellCompDirectiveDefault
			}
			return nil, nothing
		}
		values := slices.DeleteFunc(told(c, name), func(text string) bool { return !strings.HasPrefix(text, begun) })
		if slices.ContainsFunc(values, func(text string) bool { return strings.HasSuffix(text, "=") }) {
			return values, nothing | cobra.ShellCompDirectiveNoSpace
		}
		return values, nothing
	}
}

// told reads the values of a flag in its help, or in its type.
func told(c *cobra.Command, name string) []string {
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
