package plugin

import (
	"context"
	"io"
	"iter"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/cluster"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/factory"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/flags"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/permission"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/redact"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/write/journal"
)

// completer completes names that only the cluster, the kubeconfig or the policies know. It returns nothing
// on errors.
type completer struct {
	config *genericclioptions.ConfigFlags
}

// completionTimeout bounds how long a shell waits.
const completionTimeout = 3 * time.Second

// Add registers completions for the flags and arguments of a command and its subcommands.
func Add(root *cobra.Command, config *genericclioptions.ConfigFlags) {
	x := completer{config}
	complete(root, "namespace", x.namespaces)
	complete(root, "context", x.ofConfig(contexts))
	complete(root, "cluster", x.ofConfig(clusters))
	complete(root, "user", x.ofConfig(users))
	x.below(root)
}

// below registers the completions of subcommands.
func (x completer) below(parent *cobra.Command) {
	for _, c := range parent.Commands() {
		complete(c, "operation", cobra.FixedCompletions([]string{"auto", "CREATE", "UPDATE", "DELETE"}, nothing))
		complete(c, "dry-run", cobra.FixedCompletions([]string{"none", "client", "server"}, nothing))
		complete(c, "on-error", cobra.FixedCompletions([]string{flags.StopOnError, flags.ContinueOnError}, nothing))
		complete(c, "for",
			cobra.FixedCompletions(
				[]string{string(permission.Preview), string(permission.Explain), string(permission.Apply)}, nothing))
		// their help or type lists the values
		for _, name := range []string{"output", "group-by", "report", "color"} {
			complete(c, name, listedValues(name))
		}
		complete(c, "contexts", x.severalContexts)
		complete(c, "namespaces", several(x.namespaces))
		complete(c, "exclude-namespaces", several(x.namespaces))
		complete(c, "exclude", several(x.objects))
		complete(c, "only", several(x.rules))
		complete(c, "skip", several(x.rules))
		complete(c, "resume", func(_ *cobra.Command, _ []string, begun string) ([]string,
			cobra.ShellCompDirective,
		) {
			return ofRuns(begun, func(r *journal.Run) string { // those that were cut off
				if !r.Resumable() {
					return ""
				}
				return r.Name()
			})
		})
		switch c.Name() {
		case "preview", "explain", "compare", "apply-existing", "rbac", "job":
			c.ValidArgsFunction = harmless(x.objects)
		case "undo":
			c.ValidArgsFunction = harmless(x.runs)
		case "show", "completion": // files, or what they complete themselves
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
	if err := c.RegisterFlagCompletionFunc(name, harmless(values)); err != nil {
		panic(err) // the flag is there, and has no other completion
	}
}

// special has the characters that a shell acts on. compgen, which completes with older versions of cobra,
// expands some of them.
const special = "`$\"'\\;&|<>(){}[]*?!#^"

// harmless drops values without the typed prefix, names with control characters, and names that a shell
// would not take as one word: they come from clusters and files.
func harmless(values cobra.CompletionFunc) cobra.CompletionFunc {
	return func(c *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
		out, directive := values(c, args, begun)
		return slices.DeleteFunc(slices.Clone(out), func(text string) bool {
			name, description, _ := strings.Cut(text, "\t")
			return name == "" || !strings.HasPrefix(text, begun) || strings.Contains("-~=", name[:1]) ||
				strings.ContainsAny(text, special) || redact.EscapeLine(name+description) != name+description
		}), directive
	}
}

// listedValues completes the values that the help of a flag lists. A value that ends with "=" is followed by
// a file or by something that only the user knows.
func listedValues(name string) cobra.CompletionFunc {
	return func(c *cobra.Command, _ []string, begun string) ([]string, cobra.ShellCompDirective) {
		if format, _, more := strings.Cut(begun, "="); more {
			if name == "report" || strings.HasSuffix(format, "-file") {
				return nil, cobra.ShellCompDirectiveDefault
			}
			return nil, nothing
		}
		values := slices.DeleteFunc(listed(c, name), func(text string) bool {
			return !strings.HasPrefix(text, begun)
		})
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

// runs completes the IDs that history lists, the latest first, or the file of a journal kept elsewhere; then
// objects.
func (x completer) runs(c *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return x.objects(c, args, begun)
	}
	return ofRuns(begun, func(r *journal.Run) string { return r.ID })
}

// ofRuns returns the names of the runs that have one, or else completes files.
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

const nothing = cobra.ShellCompDirectiveNoFileComp

// namespaces completes the namespaces that the user may list.
func (x completer) namespaces(c *cobra.Command, _ []string,
	begun string,
) ([]string, cobra.ShellCompDirective) {
	client, err := x.client()
	if err != nil {
		return nil, nothing
	}
	return names(c.Context(), client, engine.Selection{Version: "v1", Kind: "Namespace"}, begun), nothing
}

const maxCompletions = 500

// names returns the distinct names of a selection's objects.
func names(ctx context.Context, client *cluster.Client, s engine.Selection, begun string) []string {
	ctx, cancel := context.WithTimeout(ctx, completionTimeout)
	defer cancel()
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
	return cluster.New(x.config, cluster.Options{ReadOnly: true})
}

// ofConfig completes names from the kubeconfig.
func (x completer) ofConfig(names func(*clientcmdapi.Config) iter.Seq[string]) cobra.CompletionFunc {
	return func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		raw, err := x.config.ToRawKubeConfigLoader().RawConfig()
		if err != nil {
			return nil, nothing
		}
		return slices.Sorted(names(&raw)), nothing
	}
}

func contexts(c *clientcmdapi.Config) iter.Seq[string] { return maps.Keys(c.Contexts) }
func clusters(c *clientcmdapi.Config) iter.Seq[string] { return maps.Keys(c.Clusters) }
func users(c *clientcmdapi.Config) iter.Seq[string]    { return maps.Keys(c.AuthInfos) }

// severalContexts completes --contexts: names joined by commas, or all.
func (x completer) severalContexts(c *cobra.Command, args []string,
	begun string,
) ([]string, cobra.ShellCompDirective) {
	out, directive := several(x.ofConfig(contexts))(c, args, begun)
	return append(out, factory.AllContexts), directive
}

// several completes the last of comma-separated values.
func several(values cobra.CompletionFunc) cobra.CompletionFunc {
	return func(c *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
		before := begun[:strings.LastIndex(begun, ",")+1]
		out, directive := values(c, args, begun[len(before):])
		for i := range out {
			out[i] = before + out[i]
		}
		return out, directive
	}
}

// rules completes the policies that the command line already names, and their rules.
func (x completer) rules(c *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
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
	evaluate := flags.NewEvaluate(x.config)
	evaluate.Policies = flags.Policies{Paths: paths, FromCluster: installed}
	evaluate.Objects.None, evaluate.Quiet = !installed, true
	evaluate.Streams = genericiooptions.IOStreams{Out: io.Discard, ErrOut: io.Discard}
	w, err := factory.Open(&evaluate, false, false)
	if err != nil {
		return nil, nothing
	}
	found, err := w.Describe(ctx)
	if err != nil {
		return nil, nothing
	}
	var out []string
	for _, r := range found.Descriptions {
		out = append(out, r.Rule.Policy, r.Rule.String())
	}
	return engine.Distinct(out), nothing
}

// objects completes TYPE, and after a slash the names of its objects in the namespace of the command line.
func (x completer) objects(c *cobra.Command, _ []string, begun string) ([]string, cobra.ShellCompDirective) {
	typed, name, named := strings.Cut(begun, "/")
	if !named {
		return x.types(c), nothing | cobra.ShellCompDirectiveNoSpace
	}
	client, err := x.client()
	if err != nil {
		return nil, nothing
	}
	gk, err := factory.KindOf(client.Mapper(), typed)
	if err != nil {
		return nil, nothing
	}
	s := engine.Selection{Group: gk.Group, Kind: gk.Kind}
	mapping, err := client.Mapper().RESTMapping(gk)
	if err != nil {
		return nil, nothing
	}
	if all, err := c.Flags().GetBool("all-namespaces"); mapping.Scope.Name() == meta.RESTScopeNameNamespace &&
		(err != nil || !all) {
		if s.Namespace, _, err = x.config.ToRawKubeConfigLoader().Namespace(); err != nil {
			return nil, nothing
		}
	}
	out := names(c.Context(), client, s, name)
	for i := range out {
		out[i] = typed + "/" + out[i]
	}
	return out, nothing
}

// types returns the listable resources, with their group if an earlier one has the same name.
func (x completer) types(c *cobra.Command) []string {
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
		seen[name] = true
		out = append(out, name)
	}
	slices.Sort(out)
	return out
}
