// Package catalog describes compiled policies without objects: what they match, change and read, and their
// problems.
package catalog

import (
	"cmp"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/selector"
)

// The type of the report of -o json and -o yaml (docs/policylist.schema.json).
const (
	apiVersion = "mutate.kubectl.dev/v1alpha1"
	listKind   = "PolicyList"
)

// List has all policies of a run, in the order in which they were read.
type List struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	// Clusters of a list of several; nil for one.
	Clusters []Cluster `json:"clusters,omitempty"`
	Policies []Policy  `json:"policies"`
	// Idle counts the installed policies that are left out because they do not mutate.
	Idle int `json:"idle,omitempty"`
	// Problems of inputs of several policies.
	Problems []Problem `json:"problems,omitempty"`
}

// Policy is one policy object.
type Policy struct {
	Dialect    string `json:"dialect"`
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Namespace  string `json:"namespace,omitempty"`
	Name       string `json:"name"`
	Origin     string `json:"origin"`
	// Deprecated names the successor of its kind or version.
	Deprecated string    `json:"deprecated,omitempty"`
	Rules      []Rule    `json:"rules"`
	Problems   []Problem `json:"problems,omitempty"`
	// Clusters that have the policy, in a list of several.
	Clusters []string `json:"clusters,omitempty"`

	digest [sha256.Size]byte // of its spec
}

// Rule is a rule of a policy, or the policy as one of its bindings applies it.
type Rule struct {
	// Ref names the rule as --only and --skip do.
	Ref     string   `json:"ref"`
	Name    string   `json:"name,omitempty"`
	Via     string   `json:"via,omitempty"` // the binding
	Matches []string `json:"matches"`
	// Where narrows what is matched further (engine.Description).
	Where      []string `json:"where,omitempty"`
	Targets    []string `json:"targets,omitempty"`
	Existing   string   `json:"existing"`
	Operations []string `json:"operations,omitempty"`
	Changes    []string `json:"changes"`
	Asks       []Ask    `json:"asks,omitempty"`
	// Unsupported says why the rule cannot be evaluated at all.
	Unsupported string `json:"unsupported,omitempty"`
}

// Ask is something that a rule reads besides the object. Flag is the flag that allows it.
type Ask struct {
	Of   engine.AskOf `json:"of"`
	What string       `json:"what"`
	Flag string       `json:"flag,omitempty"`
}

// Problem is an error, or a probable one, in a policy. Origin has the line of the field, if known.
type Problem struct {
	Severity Severity `json:"severity"`
	Rule     string   `json:"rule,omitempty"`
	Field    string   `json:"field,omitempty"`
	Origin   string   `json:"origin,omitempty"`
	Text     string   `json:"text"`
	// Clusters that have it, in a list of several, if it belongs to no policy.
	Clusters []string `json:"clusters,omitempty"`
}

// Severity of a problem.
type Severity string

// An Error keeps a policy, or a rule of it, from being evaluated.
const (
	Error   Severity = "error"
	Warning Severity = "warning"
	Note    Severity = "note" // not a mistake
)

// Builder puts a List together.
type Builder struct {
	// Mapper knows the kinds of resources, and the groups of kinds; may be nil.
	Mapper meta.RESTMapper
	// CheckKind as in engine.Compilation.
	CheckKind func(engine.KindName) error

	list   List
	byName map[key]int
	// subresources has unknown ones that rules match, by policy. Selections do not have them: only requests go
	// to subresources.
	subresources map[int][]*engine.CompileError
}

// key identifies the policy of a rule or a problem by its origin and its name, since the cluster is one
// origin for many.
type key struct{ origin, name string }

// NewBuilder returns a Builder without policies.
func NewBuilder() *Builder {
	return &Builder{
		list: List{APIVersion: apiVersion, Kind: listKind, Policies: []Policy{}}, byName: map[key]int{},
		subresources: map[int][]*engine.CompileError{},
	}
}

// Policy adds a policy of a dialect.
func (b *Builder) Policy(dialect string, d engine.Document) {
	u := d.Object()
	spec, _ := json.Marshal(u.Object["spec"]) // it was read from JSON
	for _, name := range d.Names() {
		b.byName[key{d.Origin, dialect + " " + name}] = len(b.list.Policies)
		b.byName[key{d.Origin, u.GetKind() + " " + name}] = len(b.list.Policies)
	}
	b.list.Policies = append(b.list.Policies, Policy{
		Dialect: dialect, APIVersion: u.GetAPIVersion(), Kind: u.GetKind(), Namespace: u.GetNamespace(),
		Name:   u.GetName(),
		Origin: d.Origin, Deprecated: deprecation(u.GroupVersionKind()), Rules: []Rule{},
		digest: sha256.Sum256(spec),
	})
}

// Rule adds the description of a rule.
func (b *Builder) Rule(d engine.Description) {
	i, known := b.byName[key{d.Rule.Origin, d.Rule.Dialect + " " + d.Rule.Policy}]
	if !known {
		return
	}
	r := Rule{
		Ref: d.Rule.String(), Name: d.Rule.Rule, Via: d.Rule.Via,
		Matches: b.texts(slices.Concat(d.Matches, d.Requests)), Targets: b.texts(d.Targets), Where: d.Where,
		Existing: string(d.Existing), Changes: append([]string{}, d.Changes...), // not null
	}
	for _, e := range b.subresources[i] {
		var unknown *engine.UnknownKindError
		if errors.As(e, &unknown) && (e.Rule == "" || e.Rule == cmp.Or(d.From, d.Rule).Rule) {
			if text := unknown.Name.String() + " (unknown)"; !slices.Contains(r.Matches, text) {
				r.Matches = append(r.Matches, text)
			}
		}
	}
	for _, o := range d.Operations {
		r.Operations = append(r.Operations, string(o))
	}
	for _, a := range d.Asks {
		r.Asks = append(r.Asks, Ask{Of: a.Of, What: a.What, Flag: flagFor(a.Of)})
	}
	if d.Gap != nil {
		r.Unsupported = d.Gap.Error()
	}
	b.list.Policies[i].Rules = append(b.list.Policies[i].Rules, r)
}

// flagFor returns the flag that allows a rule to read something.
func flagFor(of engine.AskOf) string {
	switch of {
	case engine.AskService:
		return "--allow-http"
	case engine.AskRegistry:
		return "--allow-registry"
	}
	return ""
}

// Problem adds an error or warning of a policy, or of an input of policies.
func (b *Builder) Problem(s Severity, err error) {
	var e *engine.CompileError
	if !errors.As(err, &e) {
		b.list.Problems = append(b.list.Problems, Problem{Severity: s, Text: err.Error()})
		return
	}
	p := Problem{Severity: s, Rule: e.Rule, Field: e.Field, Text: e.Err.Error()}
	if e.Line > 0 {
		p.Origin = e.Place()
	}
	i, known := b.byName[key{e.Origin, e.Policy}]
	if !known {
		p.Origin, p.Text = e.Place(), e.Policy+": "+p.Text
		b.list.Problems = append(b.list.Problems, p)
		return
	}
	b.list.Policies[i].Problems = append(b.list.Policies[i].Problems, p)
	var unknown *engine.UnknownKindError
	if errors.As(e.Err, &unknown) && unknown.Name.Subresource != "" && strings.Contains(e.Field, "match") {
		b.subresources[i] = append(b.subresources[i], e)
	}
}

// Idle counts installed policies that do not mutate.
func (b *Builder) Idle(policies int) { b.list.Idle += policies }

// List returns the list. A policy without rules has no deprecation notice: its successor is not a mutation
// policy.
func (b *Builder) List() List {
	for i := range b.list.Policies {
		if p := &b.list.Policies[i]; len(p.Rules) == 0 {
			p.Deprecated = ""
		}
	}
	return b.list
}

// Broken returns the number of errors.
func (l *List) Broken() int { return len(l.Errors()) }

// Errors returns the problems that keep policies, or rules of them, from being evaluated, each with its
// place in its text.
func (l *List) Errors() []Problem {
	var out []Problem
	add := func(p *Policy, problems []Problem) {
		for _, x := range problems {
			if x.Severity == Error {
				out = append(out, Problem{Severity: x.Severity, Text: strings.Join(x.place(p), ": ")})
			}
		}
	}
	add(nil, l.Problems)
	for i := range l.Policies {
		add(&l.Policies[i], l.Policies[i].Problems)
	}
	return out
}

// String returns the text.
func (x Problem) String() string { return x.Text }

// Cluster sums up the policies of one cluster of several.
type Cluster struct {
	Name     string `json:"name"` // of the context
	Server   string `json:"server,omitempty"`
	Policies int    `json:"policies"`
	Rules    int    `json:"rules"`
	Errors   int    `json:"errors"`
	// Problem is the first error.
	Problem string `json:"problem,omitempty"`
}

// Join returns the list of all policies of several clusters. Equal policies, whatever the kinds of their
// clusters, are listed once with the names of the clusters. A nil list is of a cluster that could not be
// read.
func Join(clusters []Cluster, lists []*List) List {
	out := List{APIVersion: apiVersion, Kind: listKind, Clusters: clusters, Policies: []Policy{}}
	policies, problems := map[string]int{}, map[string]int{}
	for i, l := range lists {
		if l == nil {
			continue
		}
		c := &out.Clusters[i]
		c.Policies, c.Errors = len(l.Policies), l.Broken()
		for _, p := range l.Policies {
			c.Rules += len(p.Rules)
			text, _ := json.Marshal(p) // it has strings only
			out.Policies = addOnce(out.Policies, policies, string(text)+string(p.digest[:]), p)
			at := &out.Policies[policies[string(text)+string(p.digest[:])]]
			at.Clusters = append(at.Clusters, c.Name)
		}
		for _, x := range l.Problems {
			id := fmt.Sprintf("%q", append(x.place(nil), string(x.Severity)))
			out.Problems = addOnce(out.Problems, problems, id, x)
			at := &out.Problems[problems[id]]
			at.Clusters = append(at.Clusters, c.Name)
		}
		if errs := l.Errors(); len(errs) > 0 && c.Problem == "" {
			c.Problem = errs[0].Text
		}
		out.Idle += l.Idle
	}
	return out
}

// addOnce adds an element unless its id is known, and records its index.
func addOnce[T any](to []T, places map[string]int, id string, what T) []T {
	if _, is := places[id]; is {
		return to
	}
	places[id] = len(to)
	return append(to, what)
}

// where names the clusters of a policy in a table.
func (l *List) where(clusters []string) string {
	if len(clusters) == len(l.Clusters) {
		return "all"
	}
	return strings.Join(clusters, ", ")
}

// onClusters returns a suffix with the clusters for which something holds, if not for all.
func (l *List) onClusters(clusters []string) string {
	if len(clusters) == len(l.Clusters) {
		return ""
	}
	return fmt.Sprintf(" (on %s)", strings.Join(clusters, ", "))
}

// deprecations are the notices for kinds and versions; empty fields match all.
//
//nolint:gochecknoglobals // an immutable table
var deprecations = []struct{ group, version, kind, notice string }{
	{"kyverno.io", "", "ClusterPolicy", "ClusterPolicy is removed in Kyverno 1.20; use MutatingPolicy of policies.kyverno.io/v1"},
	{"kyverno.io", "", "Policy", "Policy is removed in Kyverno 1.20; use NamespacedMutatingPolicy of policies.kyverno.io/v1"},
	{"policies.kyverno.io", "v1alpha1", "", "v1alpha1 is deprecated; v1 has the same fields"},
	{"admissionregistration.k8s.io", "v1alpha1", "", "v1alpha1 is deprecated since Kubernetes 1.35 and removed in 1.38; v1 is available since 1.36"},
	{"admissionregistration.k8s.io", "v1beta1", "", "v1beta1 is deprecated since Kubernetes 1.37 and removed in 1.40; v1 is available since 1.36"},
}

// deprecation returns the notice for a deprecated kind or version, or "".
func deprecation(gvk schema.GroupVersionKind) string {
	for _, d := range deprecations {
		if d.group == gvk.Group && (d.version == "" || d.version == gvk.Version) &&
			(d.kind == "" || d.kind == gvk.Kind) {
			return d.notice
		}
	}
	return ""
}

// deprecated returns a line for each notice, without policies of which a problem says the same.
func (l *List) deprecated() []string {
	var notices, out []string
	of := map[string][]*Policy{}
	for i := range l.Policies {
		p := &l.Policies[i]
		if p.Deprecated == "" ||
			slices.ContainsFunc(p.Problems, func(x Problem) bool { return x.Field == "apiVersion" }) {
			continue
		}
		if of[p.Deprecated] == nil {
			notices = append(notices, p.Deprecated)
		}
		of[p.Deprecated] = append(of[p.Deprecated], p)
	}
	for _, notice := range notices {
		all := of[notice]
		who := all[0].Kind + " " + all[0].Name
		if len(all) > 1 {
			who = fmt.Sprintf("%d objects of kind %s", len(all), all[0].Kind)
		}
		out = append(out, who+": "+notice)
	}
	return out
}

// texts returns distinct selections for people, with kinds as GROUP/KIND: rules of Kyverno leave out groups,
// and admission rules name resources. An unknown kind stays as the policy has it, and is marked.
func (b *Builder) texts(selections []engine.Selection) []string {
	out := []string{}
	for _, s := range selections {
		texts := []string{s.String() + " (unknown)"}
		if !b.unknown(s) {
			texts = nil
			for _, named := range b.named(s) {
				texts = append(texts, named.String())
			}
		}
		out = append(out, texts...)
	}
	return engine.Distinct(out)
}

// named returns a selection by its kinds.
func (b *Builder) named(s engine.Selection) []engine.Selection {
	var out []engine.Selection
	for _, gk := range b.kinds(s) {
		s.Group, s.Kind, s.Resource = gk.Group, gk.Kind, ""
		out = append(out, s)
	}
	if len(out) > 0 {
		return out
	}
	if s.Resource == "*" && s.Kind == "*" {
		s.Resource = ""
	}
	return []engine.Selection{s}
}

// unknown reports whether a selection names an unknown kind.
func (b *Builder) unknown(s engine.Selection) bool {
	if b.CheckKind == nil {
		return false
	}
	name := engine.KindName{Groups: []string{s.Group}, Kind: s.Kind, Subresource: s.Subresource}
	if s.Resource != "" {
		name.Kind, name.Resource = "", s.Resource
	}
	if s.Version != "" {
		name.Versions = []string{s.Version}
	}
	return b.CheckKind(name) != nil
}

// kinds returns the kinds of a selection, if it names them without wildcards: by a resource, or by a kind of
// any group.
func (b *Builder) kinds(s engine.Selection) []schema.GroupKind {
	wanted := schema.GroupVersionResource{Group: s.Group, Resource: s.Resource}
	if s.Resource == "" {
		wanted.Resource = strings.ToLower(s.Kind) // the singular name of most resources
	}
	if wanted.Group == "*" {
		wanted.Group = ""
	}
	plain := wanted.Resource != "" && !selector.HasWildcard(wanted.Resource+wanted.Group)
	if b.Mapper == nil || !plain || s.Resource == "" && s.Group != "*" {
		return nil
	}
	// fails if they are not served, or not known without a cluster
	found, _ := b.Mapper.KindsFor(wanted)
	var out []schema.GroupKind
	for _, gvk := range found {
		// Servers have no kinds of the group extensions since Kubernetes 1.22.
		fits := selector.MatchWildcard(s.Group, gvk.Group) && selector.MatchWildcard(s.Kind, gvk.Kind) &&
			gvk.Group != "extensions"
		if fits {
			out = append(out, gvk.GroupKind())
		}
	}
	return engine.Distinct(out)
}
