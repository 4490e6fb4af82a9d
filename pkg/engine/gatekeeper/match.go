package gatekeeper

import (
	"errors"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
)

// The scopes. Other strings filter nothing, as in Gatekeeper.
const (
	scopeNamespaced = "Namespaced"
	scopeCluster    = "Cluster"
)

// The sources. Only Gatekeeper's expansion generates objects.
const (
	sourceGenerated = "Generated"
	sourceOriginal  = "Original"
)

// applyTo names types and operations, without wildcards.
type applyTo struct {
	Groups, Versions, Kinds []string
	Operations              []string // empty for all
}

// covers reports whether the entry names a type.
func (a *applyTo) covers(gvk schema.GroupVersionKind) bool {
	return slices.Contains(a.Kinds, gvk.Kind) && slices.Contains(a.Groups, gvk.Group) &&
		slices.Contains(a.Versions, gvk.Version)
}

// does reports whether the entry names an operation.
func (a *applyTo) does(o engine.Operation) bool {
	return len(a.Operations) == 0 || slices.Contains(a.Operations, "*") ||
		slices.Contains(a.Operations, string(o))
}

// matchKinds names kinds, with `*` for any.
type matchKinds struct{ APIGroups, Kinds []string }

// covers reports whether the entry names a kind, in any version.
func (k *matchKinds) covers(gk schema.GroupKind) bool {
	return anyOr(k.Kinds, gk.Kind) && anyOr(k.APIGroups, gk.Group)
}

func anyOr(list []string, want string) bool {
	return len(list) == 0 || slices.Contains(list, "*") || slices.Contains(list, want)
}

// criteria decide whether a mutator applies. The zero value of each field filters nothing.
type criteria struct {
	// ApplyTo is nil for AssignMetadata, which applies to every type.
	ApplyTo                        []applyTo
	Kinds                          []matchKinds
	Scope                          string
	Namespaces, ExcludedNamespaces []string
	Labels, NamespaceLabels        labels.Selector
	Name                           string
	Source                         string
}

// candidate is an object with the changes of other mutators.
type candidate struct {
	Object    map[string]any
	Key       engine.ObjectKey
	Namespace *unstructured.Unstructured // of the object; nil if unknown
	// Bare, if set, is called if labels of a missing Namespace count: it then has only its name.
	Bare      func()
	Operation engine.Operation
}

// generated reports whether an ExpansionTemplate made the object.
func (c *candidate) generated() bool { return c.Key.Of.Template != "" }

func (m *criteria) from(c *candidate) bool {
	switch m.Source {
	case sourceGenerated:
		return c.generated()
	case sourceOriginal:
		return !c.generated()
	}
	return true
}

func (m *criteria) source(c *candidate) string {
	if c.generated() {
		return sourceGenerated
	}
	return sourceOriginal
}

func (c *candidate) isNamespace() bool { return c.Key.Group == "" && c.Key.Kind == "Namespace" }

// namespace returns the namespace for criteria: of a Namespace, its own name; of other cluster-scoped
// objects, "".
func (c *candidate) namespace() string {
	if c.isNamespace() {
		return c.Key.Name
	}
	return c.Key.Namespace
}

// errNoNamespace is Gatekeeper's error for a namespaceSelector if it cannot read the Namespace.
var errNoNamespace = errors.New("failed to run Match criteria: namespace selector for namespace-scoped object but missing Namespace")

// match returns the first unmet criterion in Gatekeeper's order; nil if the mutator applies. Its only error
// is errNoNamespace.
//
// As in Gatekeeper's design document, but unlike in Gatekeeper, namespaces and namespaceSelector do not match
// cluster-scoped objects.
func (m *criteria) match(c *candidate) (*criterion, error) {
	for i := range matchOrder {
		unmet := &matchOrder[i]
		switch {
		case unmet.holds(m, c):
			continue
		case unmet.name == namespaceSelector && m.lacksNamespace(c):
			return unmet, errNoNamespace
		}
		return unmet, nil
	}
	return nil, nil
}

// applies reports whether an entry of applyTo names the type; AssignMetadata has no entries.
func (m *criteria) applies(c *candidate) bool {
	gvk := c.Key.GroupVersionKind()
	return m.ApplyTo == nil || slices.ContainsFunc(m.ApplyTo, func(a applyTo) bool { return a.covers(gvk) })
}

// does reports whether an entry of applyTo names both type and operation.
func (m *criteria) does(c *candidate) bool {
	gvk := c.Key.GroupVersionKind()
	if c.generated() { // in no request: an entry for one operation does not match
		return m.ApplyTo == nil || slices.ContainsFunc(m.ApplyTo, func(a applyTo) bool {
			return a.covers(gvk) && a.does(engine.OperationCreate) && a.does(engine.OperationUpdate)
		})
	}
	return c.Operation != engine.OperationDelete &&
		(m.ApplyTo == nil ||
			slices.ContainsFunc(m.ApplyTo, func(a applyTo) bool { return a.covers(gvk) && a.does(c.Operation) }))
}

func (m *criteria) coversKind(gk schema.GroupKind) bool {
	return len(m.Kinds) == 0 || slices.ContainsFunc(m.Kinds, func(k matchKinds) bool { return k.covers(gk) })
}

func (m *criteria) scope(c *candidate) bool {
	switch m.Scope {
	case scopeCluster:
		return c.isNamespace() || c.Key.Namespace == ""
	case scopeNamespaced:
		return !c.isNamespace() && c.Key.Namespace != ""
	}
	return true
}

func (m *criteria) namespaces(c *candidate) bool {
	if len(m.Namespaces) == 0 {
		return true
	}
	ns := c.namespace()
	return ns != "" && anyGlob(m.Namespaces, ns)
}

func (m *criteria) excluded(c *candidate) bool {
	ns := c.namespace()
	return ns == "" || !anyGlob(m.ExcludedNamespaces, ns)
}

func (m *criteria) labels(c *candidate) bool {
	return m.Labels == nil || m.Labels.Matches(labelsOf(c.Object))
}

// lacksNamespace reports whether labels of an unknown Namespace count.
func (m *criteria) lacksNamespace(c *candidate) bool {
	if c.isNamespace() || c.Key.Namespace == "" || c.Namespace != nil {
		return false
	}
	requirements, _ := m.NamespaceLabels.Requirements()
	var keys []string
	for i := range requirements {
		keys = append(keys, requirements[i].Key())
	}
	if engine.OnlyName(keys) {
		return false
	}
	if c.Bare != nil {
		c.Bare()
	}
	return c.Bare == nil
}

func (m *criteria) namespaceLabels(c *candidate) bool {
	return m.NamespaceLabels == nil || (c.isNamespace() || c.Key.Namespace != "") && !m.lacksNamespace(c) &&
		m.NamespaceLabels.Matches(labels.Set(engine.LabelsOfNamespace(c.selected())))
}

// selected returns the object for a namespaceSelector; of a missing Namespace, one with its name.
func (c *candidate) selected() *unstructured.Unstructured {
	switch {
	case c.isNamespace():
		return &unstructured.Unstructured{Object: c.Object}
	case c.Namespace == nil:
		return engine.BareNamespace(c.Key.Namespace)
	}
	return c.Namespace
}

func (m *criteria) name(c *candidate) bool {
	if m.Name == "" {
		return true
	}
	metadata, _ := c.Object["metadata"].(map[string]any)
	prefix, _ := metadata["generateName"].(string)
	return glob(m.Name).matches(c.Key.Name) || glob(m.Name).matchesGenerated(prefix)
}

func labelsOf(object map[string]any) labels.Set {
	return (&unstructured.Unstructured{Object: object}).GetLabels()
}

// where lists the criteria other than types, operations, plain names and namespaces.
func (m *criteria) where() []string {
	var out []string
	if m.Scope == scopeNamespaced || m.Scope == scopeCluster {
		out = append(out, "scope: "+m.Scope)
	}
	if len(m.ExcludedNamespaces) > 0 {
		out = append(out, "unless in namespaces: "+strings.Join(m.ExcludedNamespaces, ", "))
	}
	if m.Labels != nil && !m.Labels.Empty() {
		out = append(out, "labelSelector: "+m.Labels.String())
	}
	if m.NamespaceLabels != nil && !m.NamespaceLabels.Empty() {
		out = append(out, "namespaceSelector: "+m.NamespaceLabels.String())
	}
	if strings.Contains(m.Name, "*") {
		out = append(out, "name: "+m.Name)
	}
	if m.Source == sourceGenerated {
		out = append(out, "source: "+m.Source)
	}
	return out
}
