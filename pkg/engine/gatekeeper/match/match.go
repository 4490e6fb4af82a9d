package match

import (
	"errors"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
)

// The scopes. Any other text filters nothing, as in Gatekeeper.
const (
	Namespaced = "Namespaced"
	Cluster    = "Cluster"
)

// Generated is the source of objects that exist only in Gatekeeper's expansion;
// an object of a cluster never has it, but is Original.
const (
	Generated = "Generated"
	original  = "Original"
)

// ApplyTo names types, and what is done to them, without wildcards.
type ApplyTo struct {
	Groups, Versions, Kinds []string
	Operations              []string // empty for all
}

// Covers reports whether the entry names a type.
func (a *ApplyTo) Covers(gvk schema.GroupVersionKind) bool {
	return slices.Contains(a.Kinds, gvk.Kind) && slices.Contains(a.Groups, gvk.Group) &&
		slices.Contains(a.Versions, gvk.Version)
}

// Does reports whether the entry names an operation.
func (a *ApplyTo) Does(o engine.Operation) bool {
	return len(a.Operations) == 0 || slices.Contains(a.Operations, "*") ||
		slices.Contains(a.Operations, string(o))
}

// Kinds names kinds, with `*` for any.
type Kinds struct{ APIGroups, Kinds []string }

// Covers reports whether the entry names a kind. The version does not matter.
func (k *Kinds) Covers(gk schema.GroupKind) bool {
	return anyOr(k.Kinds, gk.Kind) && anyOr(k.APIGroups, gk.Group)
}

func anyOr(list []string, want string) bool {
	return len(list) == 0 || slices.Contains(list, "*") || slices.Contains(list, want)
}

// Criteria decide whether a mutator applies. The zero value of each field filters
// nothing.
type Criteria struct {
	// ApplyTo is nil for AssignMetadata, which applies to every type.
	ApplyTo                        []ApplyTo
	Kinds                          []Kinds
	Scope                          string
	Namespaces, ExcludedNamespaces []string
	Labels, NamespaceLabels        labels.Selector
	Name                           string
	Source                         string
}

// Candidate is an object that a mutator may apply to, with the changes of the others.
type Candidate struct {
	Object    map[string]any
	Key       engine.ObjectKey
	Namespace *unstructured.Unstructured // the containing one, nil where unknown
	// Bare, if set, is called where labels of a Namespace that is not there count: it then has
	// none but its name.
	Bare      func()
	Operation engine.Operation
}

// generated reports whether an ExpansionTemplate made the object.
func (c *Candidate) generated() bool { return c.Key.Of.Template != "" }

// from reports whether the object is of the wanted source.
func (m *Criteria) from(c *Candidate) bool {
	switch m.Source {
	case Generated:
		return c.generated()
	case original:
		return !c.generated()
	}
	return true
}

// source is that of the object.
func (m *Criteria) source(c *Candidate) string {
	if c.generated() {
		return Generated
	}
	return original
}

func (c *Candidate) isNamespace() bool { return c.Key.Group == "" && c.Key.Kind == "Namespace" }

// namespace is what the criteria about namespaces look at: a Namespace by its
// own name. It is empty for other cluster-scoped objects.
func (c *Candidate) namespace() string {
	if c.isNamespace() {
		return c.Key.Name
	}
	return c.Key.Namespace
}

// Result is whether a mutator applies to a candidate. It costs nothing until it is
// to be explained.
type Result struct {
	unmet *criterion // nil where the mutator applies
}

// Applies reports whether the mutator applies.
func (r Result) Applies() bool { return r.unmet == nil }

// ErrNoNamespace is Gatekeeper's error for a namespaceSelector when it cannot read the
// Namespace.
var ErrNoNamespace = errors.New("failed to run Match criteria: namespace selector for namespace-scoped object but missing Namespace")

// Match compares a candidate with the criteria, in Gatekeeper's order, up to the
// first that is not met. Its only error is ErrNoNamespace.
//
// Unlike Gatekeeper, and as its design document says, namespaces and
// namespaceSelector do not match objects that are in no namespace.
func (m *Criteria) Match(c *Candidate) (Result, error) {
	for i := range criteria {
		if criteria[i].holds(m, c) {
			continue
		}
		if criteria[i].name == namespaceSelector && m.lacksNamespace(c) {
			return Result{&criteria[i]}, ErrNoNamespace
		}
		return Result{&criteria[i]}, nil
	}
	return Result{}, nil
}

// applies reports whether an entry of applyTo names the type; for AssignMetadata there are none.
func (m *Criteria) applies(c *Candidate) bool {
	gvk := c.Key.GroupVersionKind()
	return m.ApplyTo == nil || slices.ContainsFunc(m.ApplyTo, func(a ApplyTo) bool { return a.Covers(gvk) })
}

// does reports whether an entry of applyTo names both type and operation.
func (m *Criteria) does(c *Candidate) bool {
	gvk := c.Key.GroupVersionKind()
	if c.generated() { // in no request: an entry for one operation does not match
		return m.ApplyTo == nil || slices.ContainsFunc(m.ApplyTo, func(a ApplyTo) bool {
			return a.Covers(gvk) && a.Does(engine.OperationCreate) && a.Does(engine.OperationUpdate)
		})
	}
	return c.Operation != engine.OperationDelete &&
		(m.ApplyTo == nil ||
			slices.ContainsFunc(m.ApplyTo, func(a ApplyTo) bool { return a.Covers(gvk) && a.Does(c.Operation) }))
}

// CoversKind reports whether the kinds cover one.
func (m *Criteria) CoversKind(gk schema.GroupKind) bool {
	return len(m.Kinds) == 0 || slices.ContainsFunc(m.Kinds, func(k Kinds) bool { return k.Covers(gk) })
}

func (m *Criteria) scope(c *Candidate) bool {
	switch m.Scope {
	case Cluster:
		return c.isNamespace() || c.Key.Namespace == ""
	case Namespaced:
		return !c.isNamespace() && c.Key.Namespace != ""
	}
	return true
}

func (m *Criteria) namespaces(c *Candidate) bool {
	if len(m.Namespaces) == 0 {
		return true
	}
	ns := c.namespace()
	return ns != "" && AnyGlob(m.Namespaces, ns)
}

func (m *Criteria) excluded(c *Candidate) bool {
	ns := c.namespace()
	return ns == "" || !AnyGlob(m.ExcludedNamespaces, ns)
}

func (m *Criteria) labels(c *Candidate) bool {
	return m.Labels == nil || m.Labels.Matches(labelsOf(c.Object))
}

// lacksNamespace reports whether labels count of a Namespace that is not known.
func (m *Criteria) lacksNamespace(c *Candidate) bool {
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

func (m *Criteria) namespaceLabels(c *Candidate) bool {
	return m.NamespaceLabels == nil || (c.isNamespace() || c.Key.Namespace != "") && !m.lacksNamespace(c) &&
		m.NamespaceLabels.Matches(labels.Set(engine.LabelsOfNamespace(c.selected())))
}

// selected is what a namespaceSelector looks at; of a Namespace that is not there, its name.
func (c *Candidate) selected() *unstructured.Unstructured {
	switch {
	case c.isNamespace():
		return &unstructured.Unstructured{Object: c.Object}
	case c.Namespace == nil:
		return engine.BareNamespace(c.Key.Namespace)
	}
	return c.Namespace
}

func (m *Criteria) name(c *Candidate) bool {
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

// Where lists the criteria that are about more than types, operations, plain names
// and namespaces.
func (m *Criteria) Where() []string {
	var out []string
	if m.Scope == Namespaced || m.Scope == Cluster {
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
	if m.Source == Generated {
		out = append(out, "source: "+m.Source)
	}
	return out
}
