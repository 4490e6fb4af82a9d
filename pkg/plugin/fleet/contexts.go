package fleet

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/selector"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/redact"
)

// All stands for every context of a kubeconfig.
const All = "all"

// Contexts returns the contexts of a kubeconfig that names and wildcards choose: names in the order in
// which they were typed, and what one wildcard matches in alphabetical order. Each is there once. It is
// an error if a name or a wildcard chooses none.
func Contexts(config *clientcmdapi.Config, typed []string) ([]string, error) {
	known := slices.Sorted(maps.Keys(config.Contexts))
	var out []string
	for _, name := range typed {
		found := matching(known, name)
		if len(found) == 0 {
			return nil, unknown(known, name)
		}
		for _, context := range found {
			if !slices.Contains(out, context) {
				out = append(out, context)
			}
		}
	}
	if len(out) == 0 {
		return nil, errors.New("--contexts names no context")
	}
	return out, nil
}

func matching(known []string, name string) []string {
	switch {
	case name == All:
		return known
	case slices.Contains(known, name):
		return []string{name}
	case !selector.HasWildcard(name):
		return nil
	}
	return slices.DeleteFunc(slices.Clone(known), func(context string) bool { return !selector.MatchWildcard(name, context) })
}

func unknown(known []string, name string) error {
	if len(known) == 0 {
		return errors.New("--contexts: the kubeconfig has no contexts")
	}
	hint := "kubectl config get-contexts lists them"
	if selector.HasWildcard(name) {
		return fmt.Errorf("--contexts: no context matches %q; %s", name, hint)
	}
	if near := engine.Nearest(name, slices.Values(known)); near != "" {
		hint = fmt.Sprintf("did you mean %q?", near)
	}
	return fmt.Errorf("--contexts: there is no context %q; %s", name, hint)
}

// Distinct returns the contexts without those that have the same server as one before them and, unless
// the run chooses the namespace, the same namespace: each object is then evaluated, and written, once. The notes
// say which contexts are left out, and which share objects that have no namespace.
func Distinct(config *clientcmdapi.Config, contexts []string, anyNamespace bool) (distinct, notes []string) {
	type place struct{ server, namespace string }
	first, of := map[place]string{}, map[string]string{} // contexts
	for _, name := range contexts {
		context := config.Contexts[name]
		at := place{namespace: context.Namespace}
		if at.namespace == "" {
			at.namespace = "default"
		}
		if anyNamespace {
			at.namespace = ""
		}
		cluster := config.Clusters[context.Cluster]
		if cluster == nil {
			distinct = append(distinct, name) // its run says what is wrong
			continue
		}
		at.server = cluster.Server
		if same, is := first[at]; is {
			notes = append(notes, fmt.Sprintf("context %s is left out: it has %s as %s", redact.EscapeLine(name), sameness(anyNamespace), redact.EscapeLine(same)))
			continue
		}
		if other, is := of[at.server]; is {
			notes = append(notes, fmt.Sprintf("contexts %s and %s have the same server: objects without a namespace come twice, unless -n or -A is given", redact.EscapeLine(other), redact.EscapeLine(name)))
		} else {
			of[at.server] = name
		}
		first[at] = name
		distinct = append(distinct, name)
	}
	return distinct, notes
}

func sameness(anyNamespace bool) string {
	if anyNamespace {
		return "the same server"
	}
	return "the same server and namespace"
}

// Repeated returns the names that were typed more than once.
func Repeated(typed []string) []string {
	var out []string
	for i, name := range typed {
		if slices.Contains(typed[:i], name) && !slices.Contains(out, name) {
			out = append(out, name)
		}
	}
	return out
}
