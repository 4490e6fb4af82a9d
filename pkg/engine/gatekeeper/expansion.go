package gatekeeper

import (
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/policydecode"
)

// templateKind is an ExpansionTemplate, by which Gatekeeper generates the objects that a controller would
// create, to review them with their owner (pkg/expansion in Gatekeeper).
//
//nolint:gochecknoglobals // immutable
var templateKind = schema.GroupKind{Group: "expansion.gatekeeper.sh", Kind: "ExpansionTemplate"}

type template struct {
	ref       engine.RuleRef
	source    []string
	applyTo   []applyTo
	generates schema.GroupVersionKind
	node      policydecode.Node
}

func (t *template) applies(gvk schema.GroupVersionKind) bool {
	return slices.ContainsFunc(t.applyTo, func(a applyTo) bool { return a.covers(gvk) })
}

// decodeTemplates reads a compilation's templates, and adds the generated kinds to its check of kinds. It
// returns the errors of those that Gatekeeper does not enforce.
func decodeTemplates(c *engine.Compilation) ([]*template, []error) {
	var all []*template
	var errs []error
	for _, document := range c.Documents {
		if document.Key.GroupKind != templateKind {
			continue
		}
		r := policydecode.NewReport(document, templateKind.Kind+" "+document.Key.Name, c)
		if t := decodeTemplate(r, document.Object()); t != nil {
			all = slices.DeleteFunc(all, func(known *template) bool { return known.ref.Policy == t.ref.Policy })
			all = append(all, t)
		}
		errs = append(errs, r.Errs...)
	}
	all, cycles := acyclic(all)
	if check := c.CheckKind; check != nil && len(all) > 0 {
		var own engine.Kinds
		for _, t := range all {
			own.Known = append(own.Known, engine.KnownKind{GroupVersionKind: t.generates})
		}
		c.CheckKind = func(name engine.KindName) error {
			if own.Check(name) == nil {
				return nil
			}
			return check(name)
		}
	}
	return all, append(errs, cycles...)
}

// decodeTemplate reads a template; nil if Gatekeeper refuses it.
func decodeTemplate(r *policydecode.Report, u *unstructured.Unstructured) *template {
	root := policydecode.Node{Report: r, Value: u.Object}.Fields()
	spec := root.At("spec").Fields()
	t := &template{
		node: root.At("spec"), ref: engine.RuleRef{Dialect: Name, Policy: u.GetName(), Origin: r.Origin},
	}
	before := len(r.Errs)
	const maxName = 63
	if len(t.ref.Policy) > maxName {
		root.At("metadata").Fail("ExpansionTemplate name must be less than %d characters", maxName+1)
	}
	for _, item := range spec.At("applyTo").List() {
		f := item.Fields()
		t.applyTo = append(t.applyTo, applyTo{
			Groups: f.At("groups").Texts(), Versions: f.At("versions").Texts(), Kinds: f.At("kinds").Texts(),
		})
		f.Done()
	}
	generated := spec.At("generatedGVK").Fields()
	t.generates = schema.GroupVersionKind{
		Group:   generated.At("group").Text(),
		Version: generated.At("version").Text(), Kind: generated.At("kind").Text(),
	}
	generated.Done()
	source := spec.At("templateSource").Text()
	t.source = strings.Split(source, ".")
	spec.Accept("enforcementAction") // of the constraints that review generated objects
	spec.Done()
	root.DoneObject()
	switch {
	case source == "":
		spec.At("templateSource").Fail("ExpansionTemplate %s has empty source field", t.ref.Policy)
	case t.generates.Empty():
		spec.At("generatedGVK").Fail("ExpansionTemplate %s has empty generatedGVK field", t.ref.Policy)
	case len(t.applyTo) == 0:
		spec.At("applyTo").Fail("ExpansionTemplate %s must specify ApplyTo", t.ref.Policy)
	case t.applies(t.generates):
		spec.At("generatedGVK").Fail("ExpansionTemplate %s generates GVK %v, but also applies to that same GVK", t.ref.Policy, t.generates)
	}
	if len(r.Errs) > before {
		return nil
	}
	return t
}

// acyclic returns the templates, by name, without those that directly or indirectly generate their own input:
// Gatekeeper enforces none of these.
func acyclic(all []*template) (kept []*template, errs []error) {
	slices.SortFunc(all, func(a, b *template) int { return strings.Compare(a.ref.Policy, b.ref.Policy) })
	for _, t := range all {
		reached := []*template{t}
		cycle := false
		for i := 0; i < len(reached); i++ {
			for _, next := range all {
				if next.applies(reached[i].generates) {
					cycle = cycle || next == t
					if !slices.Contains(reached, next) {
						reached = append(reached, next)
					}
				}
			}
		}
		if !cycle {
			kept = append(kept, t)
			continue
		}
		e := t.node.Error(fmt.Errorf("template forms expansion cycle"))
		errs = append(errs, &e)
	}
	return kept, errs
}

// Expands implements engine.Expander.
func (p *program) Expands() []engine.Selection {
	var out engine.SelectionSet
	for _, t := range p.templates {
		for i := range t.applyTo {
			for _, gvk := range typesOf(&t.applyTo[i]) {
				out.Add(engine.Selection{Group: gvk.Group, Version: gvk.Version, Kind: gvk.Kind})
			}
		}
	}
	return out.All
}

// Expand implements engine.Expander.
func (p *program) Expand(of *unstructured.Unstructured) []engine.Generated {
	var out []engine.Generated
	for _, t := range p.templates {
		if t.applies(of.GroupVersionKind()) {
			out = append(out, t.expand(of))
		}
	}
	return out
}

func (t *template) expand(of *unstructured.Unstructured) engine.Generated {
	out := engine.Generated{By: t.ref, Object: &unstructured.Unstructured{}}
	source, found, err := unstructured.NestedMap(of.Object, t.source...)
	switch {
	case err != nil:
		out.Err = fmt.Errorf("could not extract source field from unstructured: %w", err)
	case !found:
		out.Err = fmt.Errorf("could not find source field %q in resource %s", strings.Join(t.source, "."), of.GetName())
	default:
		out.Object.Object = source
	}
	u := out.Object
	u.SetGroupVersionKind(t.generates)
	u.SetNamespace(of.GetNamespace())
	u.SetName(strings.ToLower(of.GetName() + "-" + t.generates.Kind))
	owner := metav1.OwnerReference{APIVersion: of.GetAPIVersion(), Kind: of.GetKind(), Name: of.GetName()}
	owned := func(o metav1.OwnerReference) bool {
		return o.APIVersion == owner.APIVersion && o.Kind == owner.Kind && o.Name == owner.Name
	}
	if owners := u.GetOwnerReferences(); !slices.ContainsFunc(owners, owned) {
		u.SetOwnerReferences(append(owners, owner))
	}
	return out
}
