package gatekeeper

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/limit"
)

type program struct {
	engine.Descriptions
	mutators []*mutator // by kind, then by name
	rounds   int        // Gatekeeper's limit for the set
	excluded []string   // by Gatekeeper's Config

	templates []*template // by name
}

// Evaluate runs the set until nothing changes. If a mutator fails, or the set does not converge, the object
// stays unchanged. There is no reinvocation: Gatekeeper's webhook does not request it.
func (p *program) Evaluate(
	ctx context.Context, t engine.Target, w *engine.World, sink engine.Sink,
) (*unstructured.Unstructured, error) {
	if err := ctx.Err(); err != nil || t.Request.Reinvocation {
		return t.Object, err
	}
	r := newRun(p, t)
	if t.Namespace == nil {
		t = r.readNamespace(ctx, w)
	}
	if reason := p.excludes(t); t.Key.Of.Template == "" && reason != "" {
		for _, m := range p.mutators {
			sink.Step(engine.Step{Rule: m.ref, Outcome: engine.NotMatched, Err: errors.New(reason)})
		}
		return t.Object, nil
	}
	rules, done := limit.Rule(ctx, r)
	r.clock = limit.ClockOf(rules)
	r.converge()
	done()
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	r.schema = sync.OnceValue(func() engine.Schema {
		s, _ := w.Schema(ctx, t.Key.GroupVersionKind())
		return s
	})
	r.report(sink)
	return r.object, nil
}

// readNamespace adds the Namespace to a target without one if a mutator needs it. An unreadable Namespace
// stays unknown.
func (r *run) readNamespace(ctx context.Context, w *engine.World) engine.Target {
	asks := slices.ContainsFunc(r.program.mutators,
		func(m *mutator) bool { return m.criteria.NamespaceLabels != nil })
	if !asks || r.target.Key.Namespace == "" || w.Reader == nil {
		return r.target
	}
	namespace, err := w.ReadNamespace(ctx, r.target.Key.Namespace)
	switch {
	case err == nil:
		r.target.Namespace, r.candidate.Namespace = namespace, namespace
	case apierrors.IsNotFound(err):
		r.candidate.Bare = func() { w.LackNamespace(r.target.Key.Namespace) }
	}
	return r.target
}

// ignoreLabel excludes a Namespace from Gatekeeper's webhooks.
const ignoreLabel = "admission.gatekeeper.sh/ignore"

// excludes returns why Gatekeeper's webhook never sees the object, or "" (pkg/webhook in Gatekeeper, and the
// webhook configuration of its chart).
func (p *program) excludes(t engine.Target) string {
	group, own := strings.CutSuffix(t.Key.Group, ".gatekeeper.sh")
	if own {
		switch group {
		case "templates", "constraints", "mutations", "config", "externaldata", "expansion", "status":
			return "Not mutating gatekeeper resources"
		}
	}
	namespace, name := t.Namespace, t.Key.Namespace
	if t.Key.Group == "" && t.Key.Kind == "Namespace" {
		namespace, name = t.Object, t.Key.Name
	}
	if name == "" {
		return ""
	}
	if namespace != nil {
		if _, ignored, err := unstructured.NestedString(namespace.Object, "metadata", "labels",
			ignoreLabel); err == nil && ignored {
			return "its Namespace has the label " + ignoreLabel
		}
	}
	if anyGlob(p.excluded, name) {
		return "Namespace is set to be ignored by Gatekeeper config"
	}
	return ""
}

// selections returns the objects that the mutator matches, without duplicates. Labels do not narrow them: the
// mutator may only match another one's result, but then that one matches the live object.
func (m *mutator) selections() []engine.Selection {
	var out engine.SelectionSet
	if m.criteria.Source != sourceGenerated {
		for _, gvk := range m.types() {
			out.Add(m.narrowed(gvk)...)
		}
	}
	return out.All
}

// types returns the types that the mutator may match; parts may be "*".
func (m *mutator) types() []schema.GroupVersionKind {
	var out []schema.GroupVersionKind
	if m.criteria.ApplyTo != nil {
		for i := range m.criteria.ApplyTo {
			for _, gvk := range typesOf(&m.criteria.ApplyTo[i]) {
				literal := !strings.Contains(gvk.Group+gvk.Version+gvk.Kind, "*")
				if literal && m.criteria.coversKind(gvk.GroupKind()) {
					out = append(out, gvk)
				}
			}
		}
		return out
	}
	if len(m.criteria.Kinds) == 0 {
		return []schema.GroupVersionKind{{Group: "*", Kind: "*"}}
	}
	combinations := 0
	for _, k := range m.criteria.Kinds {
		combinations += len(orAny(k.APIGroups)) * len(orAny(k.Kinds))
	}
	if combinations*max(1, len(m.criteria.Namespaces)) > maxTypes { // the match is checked again anyway
		return []schema.GroupVersionKind{{Group: "*", Kind: "*"}}
	}
	for _, k := range m.criteria.Kinds {
		for _, group := range orAny(k.APIGroups) {
			for _, kind := range orAny(k.Kinds) {
				out = append(out, schema.GroupVersionKind{Group: group, Kind: kind})
			}
		}
	}
	return out
}

func orAny(list []string) []string {
	if len(list) == 0 || slices.Contains(list, "*") {
		return []string{"*"}
	}
	return list
}

// narrowed selects a type in the mutator's namespaces, and by its name. A Namespace is in itself.
func (m *mutator) narrowed(gvk schema.GroupVersionKind) []engine.Selection {
	s := engine.Selection{Group: gvk.Group, Version: gvk.Version, Kind: gvk.Kind}
	if name := m.criteria.Name; !strings.Contains(name, "*") {
		s.Name = name
	}
	if len(m.criteria.Namespaces) == 0 {
		return []engine.Selection{s}
	}
	var out []engine.Selection
	for _, ns := range m.criteria.Namespaces {
		if gvk.Kind != "Namespace" {
			inside := s
			inside.Namespace = ns
			out = append(out, inside)
		}
		if (gvk.Kind == "Namespace" || gvk.Kind == "*") && (gvk.Group == "" || gvk.Group == "*") {
			out = append(out, engine.Selection{Version: gvk.Version, Kind: "Namespace", Name: ns})
		}
	}
	return out
}
