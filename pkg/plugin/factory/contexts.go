package factory

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"

	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/selector"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/redact"
)

// AllContexts stands for every context of a kubeconfig.
const AllContexts = "all"

// ContextsNamed returns the distinct contexts of a kubeconfig that names and wildcards select, in the order
// of typing, those of one wildcard in alphabetical order. Contexts with an empty name are left out, as
// kubectl cannot use them. A name or wildcard without a context is an error.
func ContextsNamed(config *clientcmdapi.Config, typed []string) ([]string, error) {
	known := slices.DeleteFunc(slices.Sorted(maps.Keys(config.Contexts)), func(name string) bool {
		return name == ""
	})
	var out []string
	for _, name := range typed {
		found := matching(known, name)
		if len(found) == 0 {
			return nil, unknown(known, name)
		}
		out = append(out, found...)
	}
	if len(out) == 0 {
		return nil, errors.New("--contexts names no context")
	}
	return engine.Distinct(out), nil
}

func matching(known []string, name string) []string {
	switch {
	case name == AllContexts:
		return known
	case slices.Contains(known, name):
		return []string{name}
	case !selector.HasWildcard(name):
		return nil
	}
	return slices.DeleteFunc(slices.Clone(known), func(context string) bool {
		return !selector.MatchWildcard(name, context)
	})
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

// DistinctContexts drops contexts that reach the same server as the same user as an earlier one and, unless
// the run chooses the namespace, in the same namespace: each object is then evaluated, and written, once.
// Contexts with different users are kept, since a proxy may serve several clusters at one address and tell
// them apart by the user. The notes say which contexts are left out, and which may share objects.
func DistinctContexts(config *clientcmdapi.Config, contexts []string,
	anyNamespace bool,
) (distinct, notes []string) {
	type server struct{ address, certificate, proxy string }
	type place struct {
		server
		user, namespace string
	}
	first := map[place]string{}
	users := map[server]map[string]string{} // the first context of each
	sameness := "server, user and namespace"
	if anyNamespace {
		sameness = "server and user"
	}
	note := func(format, a, b string) {
		notes = append(notes, fmt.Sprintf(format, redact.EscapeLine(a), redact.EscapeLine(b)))
	}
	for _, name := range contexts {
		context := config.Contexts[name]
		cluster := config.Clusters[context.Cluster]
		if cluster == nil {
			distinct = append(distinct, name) // its run reports the error
			continue
		}
		at := place{server{cluster.Server, cluster.TLSServerName, cluster.ProxyURL}, context.AuthInfo, ""}
		if !anyNamespace {
			at.namespace = cmp.Or(context.Namespace, "default")
		}
		if same, is := first[at]; is {
			note("context %s is left out: it has the same "+sameness+" as %s", name, same)
			continue
		}
		first[at] = name
		distinct = append(distinct, name)
		known := users[at.server]
		other, is := known[at.user]
		switch {
		case is:
			note("contexts %s and %s have the same server: objects without a namespace come twice, unless -n or -A is given", other, name)
			continue
		case known == nil:
			known = map[string]string{}
			users[at.server] = known
		case len(known) == 1: // one note is enough
			for _, other := range known {
				note("contexts %s and %s have the same server and different users: if they are one cluster, its objects come twice", other, name)
			}
		}
		known[at.user] = name
	}
	return distinct, notes
}

// RepeatedContexts returns the names that were typed more than once.
func RepeatedContexts(typed []string) []string {
	var out []string
	for i, name := range typed {
		if slices.Contains(typed[:i], name) && !slices.Contains(out, name) {
			out = append(out, name)
		}
	}
	return out
}
