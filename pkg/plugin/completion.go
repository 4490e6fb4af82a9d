package plugin

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/kubectl/pkg/util/templates"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/cluster"
)

// kubectlCompletion is what kubectl runs to complete the arguments of a plugin
// (k8s.io/kubectl/pkg/cmd/plugin_completion.go).
const kubectlCompletion = `#!/usr/bin/env sh
# kubectl runs this to complete "kubectl mutate ...". To install it, put it on the
# PATH, for instance:
#   %s completion kubectl >~/.local/bin/kubectl_complete-mutate && chmod +x ~/.local/bin/kubectl_complete-mutate
exec kubectl mutate __complete "$@"
`

// NewCompletionCommand prints what makes a shell complete command lines.
func NewCompletionCommand(name string, streams genericiooptions.IOStreams) *cobra.Command {
	return &cobra.Command{
		Use:   "completion kubectl|bash|zsh|fish|powershell",
		Short: "Print the script that completes command lines",
		Long: templates.LongDesc(`
			Print the script with which kubectl completes the plugin's flags, types, names and
			policies in any shell in which it completes its own; or the one with which a shell
			completes the program when it is called as kubectl-mutate.`),
		Example: templates.Examples(fmt.Sprintf(`
			# For kubectl mutate, in a directory of the PATH
			%[1]s completion kubectl >~/.local/bin/kubectl_complete-mutate && chmod +x ~/.local/bin/kubectl_complete-mutate

			# For kubectl-mutate, in this bash
			source <(kubectl-mutate completion bash)`, name)),
		Args:                  cobra.MatchAll(cobra.ExactArgs(1), cobra.OnlyValidArgs),
		ValidArgs:             []string{"kubectl", "bash", "zsh", "fish", "powershell"},
		DisableFlagsInUseLine: true,
		RunE: func(c *cobra.Command, args []string) error {
			return printCompletion(c.Root(), args[0], name, streams.Out)
		},
	}
}

func printCompletion(root *cobra.Command, shell, name string, out io.Writer) error {
	if shell == "kubectl" {
		_, err := fmt.Fprintf(out, kubectlCompletion, name)
		return err
	}
	root.Use = "kubectl-mutate" // the program that the shell is to complete
	switch shell {
	case "bash":
		return root.GenBashCompletionV2(out, true)
	case "zsh":
		return root.GenZshCompletion(out)
	case "fish":
		return root.GenFishCompletion(out, true)
	default:
		return root.GenPowerShellCompletionWithDesc(out)
	}
}

// completer completes what only the cluster, the kubeconfig or the policies know.
// Whatever goes wrong there, nothing is completed.
type completer struct {
	config *genericclioptions.ConfigFlags
}

// completionTimeout bounds how long a shell waits.
const completionTimeout = 3 * time.Second

// addCompletions has the flags and the arguments of all commands completed.
func addCompletions(root *cobra.Command, config *genericclioptions.ConfigFlags) {
	x := completer{config}
	complete(root, "namespace", x.namespaces)
	complete(root, "context", x.contexts)
	complete(root, "cluster", x.clusters)
	complete(root, "user", x.users)
	x.below(root)
}

// below has the commands below one completed.
func (x completer) below(parent *cobra.Command) {
	for _, c := range parent.Commands() {
		for _, f := range []struct {
			name   string
			values []string
		}{
			{"operation", []string{"auto", "CREATE", "UPDATE", "DELETE"}},
			{"dry-run", []string{"none", "client", "server"}},
			{"on-error", []string{stopOnError, continueOnError}},
			{"for", []string{forPreview, forApply}},
		} {
			complete(c, f.name, fixedValues(f.values))
		}
		for _, name := range []string{"output", "group-by", "report", "color"} {
			complete(c, name, toldValues(name))
		}
		complete(c, "only", x.rules)
		complete(c, "skip", x.rules)
		switch c.Name() {
		case "preview", "explain", applyExisting:
			c.ValidArgsFunction = x.objects
		case "undo", "show", "completion": // files, and what cobra knows
		default:
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
	if err := c.RegisterFlagCompletionFunc(name, values); err != nil {
		panic(err) // the flag is there, and nobody else completes it
	}
}

func fixedValues(values []string) cobra.CompletionFunc {
	return func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		return values, cobra.ShellCompDirectiveNoFileComp
	}
}

// toldValues are those that the help of a flag lists.
func toldValues(name string) cobra.CompletionFunc {
	return func(c *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
		f := c.Flag(name)
		values := strings.Split(f.Value.Type(), "|")
		if _, list, ok := strings.Cut(f.Usage, "one of "); ok {
			list, _, _ = strings.Cut(list, ".")
			values = strings.Split(list, ", ")
		} else if len(values) == 1 {
			values = strings.Split(f.Value.Type(), ", ")
		}
		directive := cobra.ShellCompDirectiveNoFileComp
		if name == "report" { // FORMAT=FILE
			directive |= cobra.ShellCompDirectiveNoSpace
			for i := range values {
				values[i] += "="
			}
		}
		return values, directive
	}
}

const nothing = cobra.ShellCompDirectiveNoFileComp

// namespaces are those that the user may list.
func (x completer) namespaces(c *cobra.Command, _ []string, begun string) ([]string, cobra.ShellCompDirective) {
	return x.names(c, namespaceList, begun), nothing
}

// namespaceList selects all namespaces.
var namespaceList = engine.Selection{Version: "v1", Kind: "Namespace"} //nolint:gochecknoglobals // an immutable value

// maxCompletions is how many names are offered: more help nobody.
const maxCompletions = 500

// names are those of objects.
func (x completer) names(c *cobra.Command, s engine.Selection, begun string) []string {
	ctx, cancel := context.WithTimeout(c.Context(), completionTimeout)
	defer cancel()
	client, err := x.client()
	if err != nil {
		return nil
	}
	var out []string
	for u, err := range client.List(ctx, s) {
		if err != nil || len(out) == maxCompletions {
			break
		}
		if name := u.GetName(); strings.HasPrefix(name, begun) && !slices.Contains(out, name) {
			out = append(out, name)
		}
	}
	return out
}

func (x completer) client() (*cluster.Client, error) {
	return describing{Client: NewClientFlags(), Config: x.config}.open()
}

// contexts are those of the kubeconfig, and so are clusters and users.
func (x completer) contexts(_ *cobra.Command, _ []string, begun string) ([]string, cobra.ShellCompDirective) {
	raw, err := x.config.ToRawKubeConfigLoader().RawConfig()
	if err != nil {
		return nil, nothing
	}
	return keysFrom(raw.Contexts, begun), nothing
}

func (x completer) clusters(_ *cobra.Command, _ []string, begun string) ([]string, cobra.ShellCompDirective) {
	raw, err := x.config.ToRawKubeConfigLoader().RawConfig()
	if err != nil {
		return nil, nothing
	}
	return keysFrom(raw.Clusters, begun), nothing
}

func (x completer) users(_ *cobra.Command, _ []string, begun string) ([]string, cobra.ShellCompDirective) {
	raw, err := x.config.ToRawKubeConfigLoader().RawConfig()
	if err != nil {
		return nil, nothing
	}
	return keysFrom(raw.AuthInfos, begun), nothing
}

func keysFrom[V any](m map[string]V, begun string) []string {
	var out []string
	for key := range m {
		if strings.HasPrefix(key, begun) {
			out = append(out, key)
		}
	}
	slices.Sort(out)
	return out
}

// rules are those of the policies that are on the command line already, the
// policies that have several rules among them. Values may be joined by commas.
func (x completer) rules(c *cobra.Command, _ []string, begun string) ([]string, cobra.ShellCompDirective) {
	before := begun[:strings.LastIndex(begun, ",")+1]
	paths, err := c.Flags().GetStringArray("policy")
	if err != nil {
		return nil, nothing
	}
	installed, err := c.Flags().GetBool("from-cluster")
	if err != nil || slices.Contains(paths, "-") { // standard input is the shell's
		return nil, nothing
	}
	ctx, cancel := context.WithTimeout(c.Context(), completionTimeout)
	defer cancel()
	read := describing{Policies: PolicyFlags{Paths: paths, FromCluster: installed}, Client: NewClientFlags(), Config: x.config}
	found, err := read.read(ctx, genericiooptions.IOStreams{In: strings.NewReader(""), Out: io.Discard, ErrOut: io.Discard})
	if err != nil {
		return nil, nothing
	}
	var out []string
	for _, r := range found.rules {
		for _, name := range []string{r.Rule.Policy, r.Rule.String()} {
			if text := before + name; strings.HasPrefix(text, begun) && !slices.Contains(out, text) {
				out = append(out, text)
			}
		}
	}
	return out, nothing
}

// objects completes TYPE, and behind a slash the names of its objects in the
// namespace that is on the command line.
func (x completer) objects(c *cobra.Command, _ []string, begun string) ([]string, cobra.ShellCompDirective) {
	typed, name, named := strings.Cut(begun, "/")
	if !named {
		return x.types(c, begun), nothing | cobra.ShellCompDirectiveNoSpace
	}
	client, err := x.client()
	if err != nil {
		return nil, nothing
	}
	gk, err := kindOf(client.Mapper(), typed)
	if err != nil {
		return nil, nothing
	}
	s := engine.Selection{Group: gk.Group, Kind: gk.Kind}
	mapping, err := client.Mapper().RESTMapping(gk)
	if err != nil {
		return nil, nothing
	}
	if all, err := c.Flags().GetBool("all-namespaces"); mapping.Scope.Name() == meta.RESTScopeNameNamespace && (err != nil || !all) {
		if s.Namespace, _, err = x.config.ToRawKubeConfigLoader().Namespace(); err != nil {
			return nil, nothing
		}
	}
	out := x.names(c, s, name)
	for i := range out {
		out[i] = typed + "/" + out[i]
	}
	return out, nothing
}

// types are the resources that can be listed, with their group where another
// one has the same name.
func (x completer) types(c *cobra.Command, begun string) []string {
	ctx, cancel := context.WithTimeout(c.Context(), completionTimeout)
	defer cancel()
	client, err := x.client()
	if err != nil {
		return nil
	}
	served, err := client.Served(ctx)
	if err != nil {
		return nil
	}
	seen := map[string]bool{}
	var out []string
	for _, m := range served {
		name := m.Resource.Resource
		if seen[name] {
			name = m.Resource.GroupResource().String()
		}
		if seen[name] = true; strings.HasPrefix(name, begun) {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return out
}
