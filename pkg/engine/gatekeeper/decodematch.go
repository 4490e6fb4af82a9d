package gatekeeper

import (
	"regexp"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/policydecode"
)

// globForm is the pattern of names with wildcards in the custom resource definitions.
var globForm = regexp.MustCompile(`^\*?[-:a-z0-9]*\*?$`)

// decodeMatch reads spec.match, which all kinds share. Empty lists, and the design document's placeholders,
// filter nothing.
func decodeMatch(n policydecode.Node) criteria {
	f := n.Fields()
	c := criteria{
		Scope: f.At("scope").Text(), Source: f.At("source").Text(),
		Namespaces:         decodeGlobs(f.At("namespaces")),
		ExcludedNamespaces: decodeGlobs(f.At("excludedNamespaces")),
		Labels:             decodeSelector(f.At("labelSelector")),
		NamespaceLabels:    decodeSelector(f.At("namespaceSelector")),
		Name:               decodeGlob(f.At("name")),
	}
	for _, item := range f.At("kinds").List() {
		k := item.Fields()
		kinds := matchKinds{APIGroups: k.At("apiGroups").Texts(), Kinds: k.At("kinds").Texts()}
		for i, kind := range kinds.Kinds {
			k.At("kinds").List()[i].LintKind(engine.KindName{Groups: kinds.APIGroups, Kind: kind})
		}
		c.Kinds = append(c.Kinds, kinds)
		k.Done()
	}
	f.Done()
	if !slices.Contains([]string{"", "*", scopeNamespaced, scopeCluster}, c.Scope) {
		f.At("scope").Lint("%q is neither Namespaced nor Cluster, so it filters nothing", c.Scope)
	}
	if !slices.Contains([]string{"", "All", sourceOriginal, sourceGenerated}, c.Source) {
		f.At("source").Fail("invalid source field %q", c.Source)
	}
	return c
}

// decodeSelector reads a label selector; nil for none, and for the empty list that the design document prints
// as a placeholder.
func decodeSelector(n policydecode.Node) labels.Selector {
	if list, ok := n.Value.([]any); n.Value == nil || ok && len(list) == 0 {
		return nil
	}
	selector, err := metav1.LabelSelectorAsSelector(n.LabelSelector())
	if err != nil {
		n.Fail("%w", err)
	}
	return selector
}

func decodeGlobs(n policydecode.Node) []string {
	var out []string
	for _, item := range n.List() {
		out = append(out, decodeGlob(item))
	}
	return out
}

func decodeGlob(n policydecode.Node) string {
	text := n.Text()
	if !globForm.MatchString(text) {
		n.Lint("an API server refuses %q: only lower-case letters, digits, - and : are allowed, and * at either end%s", text, engine.PlaceholderHint(text))
	}
	return text
}

// glob is a name with `*` at its start, its end or both; any other `*` is literal (pkg/wildcard in
// Gatekeeper).
type glob string

func (g glob) parts() (text string, open, openEnd bool) {
	text, openEnd = strings.CutSuffix(string(g), "*")
	text, open = strings.CutPrefix(text, "*")
	return text, open, openEnd
}

func (g glob) matches(name string) bool {
	text, open, openEnd := g.parts()
	switch {
	case open && openEnd:
		return strings.Contains(name, text)
	case open:
		return strings.HasSuffix(name, text)
	case openEnd:
		return strings.HasPrefix(name, text)
	}
	return name == text
}

// matchesGenerated reports whether the glob matches metadata.generateName, a prefix that the server
// completes: the glob must be open at its end.
func (g glob) matchesGenerated(prefix string) bool {
	_, _, openEnd := g.parts()
	return prefix != "" && openEnd && g.matches(prefix)
}

func anyGlob(patterns []string, name string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool { return glob(p).matches(name) })
}
