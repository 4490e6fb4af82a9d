package completion

import (
	"context"
	"iter"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/meta"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/cluster"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/factory"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/flags"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/fleet"
)

const nothing = cobra.ShellCompDirectiveNoFileComp

// namespaces are those that the user may list.
func (x completer) namespaces(c *cobra.Command, _ []string, begun string) ([]string, cobra.ShellCompDirective) {
	client, err := x.client()
	if err != nil {
		return nil, nothing
	}
	return names(c.Context(), client, namespaceList, begun), nothing
}

// namespaceList selects all namespaces.
var namespaceList = engine.Selection{Version: "v1", Kind: "Namespace"} //nolint:gochecknoglobals // an immutable value

// maxCompletions is the maximum number of names.
const maxCompletions = 500

// names are those of objects.
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
	return factory.PolicyReader{Config: x.Config}.Open()
}

// ofConfig completes the names of one sort that the kubeconfig has.
func (x completer) ofConfig(names func(*clientcmdapi.Config) iter.Seq[string]) cobra.CompletionFunc {
	return func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		raw, err := x.Config.ToRawKubeConfigLoader().RawConfig()
		if err != nil {
			return nil, nothing
		}
		return slices.Sorted(names(&raw)), nothing
	}
}

func contexts(c *clientcmdapi.Config) iter.Seq[string] { return maps.Keys(c.Contexts) }
func clusters(c *clientcmdapi.Config) iter.Seq[string] { return maps.Keys(c.Clusters) }
func users(c *clientcmdapi.Config) iter.Seq[string]    { return maps.Keys(c.AuthInfos) }

// severalContexts are the same for --contexts, whose values may be joined by commas, and all.
func (x completer) severalContexts(c *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
	out, directive := several(x.ofConfig(contexts))(c, args, begun)
	return append(out, fleet.All), directive
}

// several completes the last of values that are joined by commas.
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

// rules are those of the policies that are on the command line already, the
// policies that have several rules among them.
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
	read := factory.PolicyReader{Policies: flags.Policies{Paths: paths, FromCluster: installed}, Config: x.Config}
	found, err := read.Read(ctx, strings.NewReader(""))
	if err != nil {
		return nil, nothing
	}
	var out []string
	for _, r := range found.Descriptions {
		for _, name := range []string{r.Rule.Policy, r.Rule.String()} {
			if !slices.Contains(out, name) {
				out = append(out, name)
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
	if all, err := c.Flags().GetBool("all-namespaces"); mapping.Scope.Name() == meta.RESTScopeNameNamespace && (err != nil || !all) {
		if s.Namespace, _, err = x.Config.ToRawKubeConfigLoader().Namespace(); err != nil {
			return nil, nothing
		}
	}
	out := names(c.Context(), client, s, name)
	for i := range out {
		out[i] = typed + "/" + out[i]
	}
	return out, nothing
}

// types are the resources that can be listed, with their group where another
// one has the same name.
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
