package gatekeeper

import (
	"errors"
	"fmt"
	"regexp"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/gatekeeper/match"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/policydecode"
)

// globForm is what the custom resource definitions take for a name with wildcards.
var globForm = regexp.MustCompile(`^\*?[-:a-z0-9]*\*?$`)

// decodeMatch reads spec.match, which all kinds share. Empty lists, and the
// placeholders of the design document, filter nothing.
func decodeMatch(n policydecode.Node) match.Criteria {
	f := n.Fields()
	c := match.Criteria{
		Scope: f.At("scope").Text(), Source: f.At("source").Text(),
		Namespaces:         decodeGlobs(f.At("namespaces")),
		ExcludedNamespaces: decodeGlobs(f.At("excludedNamespaces")),
		Labels:             decodeSelector(f.At("labelSelector")),
		NamespaceLabels:    decodeSelector(f.At("namespaceSelector")),
		Name:               decodeGlob(f.At("name")),
	}
	for _, item := range f.At("kinds").List() {
		k := item.Fields()
		c.Kinds = append(c.Kinds, match.Kinds{APIGroups: k.At("apiGroups").Texts(), Kinds: k.At("kinds").Texts()})
		k.Done()
	}
	f.Done()
	if !slices.Contains([]string{"", "*", match.Namespaced, match.Cluster}, c.Scope) {
		f.At("scope").Lint("%q is neither Namespaced nor Cluster, so it filters nothing", c.Scope)
	}
	if !slices.Contains([]string{"", "All", "Original", match.Generated}, c.Source) {
		f.At("source").Fail("invalid source field %q", c.Source)
	}
	if c.Source == match.Generated {
		f.At("source").Lint("objects of a cluster are never Generated, so the mutator does nothing here")
	}
	return c
}

// decodeSelector reads a label selector; nil where there is none, or the empty
// list that the design document prints as a placeholder.
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
		n.Lint("an API server refuses %q: only lower-case letters, digits, - and : are allowed, and * at either end", text)
	}
	return text
}

// decodeApplyTo reads the types that a mutator applies to.
func (m *mutator) decodeApplyTo(n policydecode.Node) []match.ApplyTo {
	items := n.List()
	if len(items) == 0 {
		n.Fail("applyTo required for %s mutator %s", m.kind, m.name)
	}
	out := make([]match.ApplyTo, 0, len(items))
	for _, item := range items {
		f := item.Fields()
		a := match.ApplyTo{
			Groups: f.At("groups").Texts(), Versions: f.At("versions").Texts(), Kinds: f.At("kinds").Texts(),
			Operations: f.At("operations").Texts(),
		}
		f.Done()
		if len(a.Groups) == 0 || len(a.Versions) == 0 || len(a.Kinds) == 0 {
			item.Fail("invalid applyTo for %s mutator %s, all of group, version and kind must be specified", m.kind, m.name)
		}
		if err := checkOperations(a.Operations); err != nil {
			f.At("operations").Fail("invalid applyTo for %s mutator %s: %w", m.kind, m.name, err)
		}
		lintApplyTo(f, a)
		out = append(out, a)
	}
	return out
}

func checkOperations(list []string) error {
	for i, o := range list {
		switch {
		case o != "*" && o != "CREATE" && o != "UPDATE":
			return fmt.Errorf("invalid operation %q: must be one of CREATE, UPDATE, *", o)
		case slices.Contains(list[:i], o):
			return fmt.Errorf("duplicate operation %q", o)
		}
	}
	if len(list) > 1 && slices.Contains(list, "*") {
		return errors.New(`wildcard "*" must not be combined with other operations`)
	}
	return nil
}
