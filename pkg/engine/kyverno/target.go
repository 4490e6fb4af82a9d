package kyverno

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/decode"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/kyverno/conditions"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/kyverno/variables"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/selector"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/wildcard"
)

// target is one entry of mutate.targets.
type target struct {
	field         string              // "mutate.targets[0]"
	template      *variables.Template // of what names the objects
	written       map[string]string   // name and namespace as the policy has them
	own           string              // the namespace of a Policy, which its targets share
	kind          string              // as written
	labels        *metav1.LabelSelector
	context       []*contextEntry
	preconditions *conditions.Conditions
	impure        string // as in mutated, because of the context
}

func decodeTarget(n decode.Node) *target {
	f := n.Fields()
	t := &target{field: fieldInRule(n.Path), own: n.Report.Namespace, written: map[string]string{}}
	naming := map[string]any{}
	for _, key := range []string{"apiVersion", "kind", "name", "namespace"} {
		t.written[key] = f.At(key).Text()
		naming[key] = t.written[key]
	}
	for _, key := range []string{"apiVersion", "kind"} {
		if t.written[key] == "" {
			f.At(key).Fail("is missing")
		}
	}
	t.kind = t.written["kind"]
	if s := f.At("selector"); s.Value != nil {
		t.labels = s.LabelSelector()
		naming["selector"] = s.Value
	}
	if ns := t.written["namespace"]; t.own != "" && ns != "" && ns != t.own {
		f.At("namespace").Lint("a Policy only changes objects in its own namespace %s", t.own)
	}
	t.template = decodeTemplate(decode.Node{Report: n.Report, Rule: n.Rule, Path: n.Path, Value: naming})
	t.context = decodeContext(f.At("context"))
	t.impure = impureContext(t.context)
	t.preconditions = decodeConditions(f.At("preconditions"))
	f.Accept("uid")
	f.Done()
	return t
}

// lintTargetKinds warns of targets that, as the documents have it, must not be
// in one rule because they do not share a schema.
func lintTargetKinds(n decode.Node, targets []*target) {
	for _, t := range targets {
		if t.kind != targets[0].kind {
			n.Lint("changes both %s and %s; Kyverno's documents want one kind in a rule", targets[0].kind, t.kind)
			return
		}
	}
}

// subjects names the objects to change, with the trigger's variables resolved.
func (t *target) subjects(e *execution, s *variables.Scope) (engine.Selection, error) {
	rendered, err := t.template.Render(s)
	if err != nil {
		return engine.Selection{}, e.failed(t.field, fmt.Errorf("failed to substitute variables: %w", err))
	}
	naming := mapping(rendered)
	parts := map[string]string{}
	for _, key := range []string{"apiVersion", "kind", "name", "namespace"} {
		value, ok := naming[key].(string)
		if (!ok || value == "") && t.written[key] != "" {
			return engine.Selection{}, e.failed(t.field+"."+key, fmt.Errorf(
				"%s evaluates to nothing, which would stand for all; check the expression", t.written[key]))
		}
		parts[key] = value
	}
	kind, err := parseTargetKind(parts["apiVersion"], parts["kind"])
	if err != nil {
		return engine.Selection{}, e.failed(t.field+".kind", err)
	}
	out := engine.Selection{
		Group: kind.Group, Version: kind.Version, Kind: kind.Kind, Subresource: kind.Subresource,
		Namespace: parts["namespace"], Name: parts["name"],
	}
	if t.own != "" {
		out.Namespace = t.own
	}
	if out.Labels, err = targetLabels(naming["selector"]); err != nil {
		return out, e.failed(t.field+".selector", err)
	}
	return narrow(out, e.world.Mapper), nil
}

func targetLabels(value any) (*metav1.LabelSelector, error) {
	if value == nil {
		return nil, nil
	}
	return decode.LabelSelector(value)
}

// parseTargetKind reads apiVersion and kind, both perhaps with wildcards, in the
// grammar of match blocks; but a plain "v1" is the core group, as in any other
// manifest, where Kyverno takes it for version v1 of every group.
func parseTargetKind(apiVersion, kind string) (selector.Kind, error) {
	out, err := selector.ParseKind(apiVersion + "/" + kind)
	if err == nil && out.Group == "*" && out.Version == apiVersion && !wildcard.Has(apiVersion) {
		out.Group = ""
	}
	return out, err
}

// narrow makes a selection say what it leaves to Kyverno's conventions. A plain
// name and namespace decide alone, without the selector. A name without a
// namespace is one object of a kind without namespaces, and else that name in
// every namespace.
func narrow(s engine.Selection, mapper meta.RESTMapper) engine.Selection {
	plainName := s.Name != "" && !wildcard.Has(s.Name)
	if plainName && s.Namespace != "" && !wildcard.Has(s.Namespace) {
		s.Labels = nil
	}
	if plainName && s.Namespace == "" && !clusterScoped(s, mapper) {
		s.Namespace = "*"
	}
	return s
}

func clusterScoped(s engine.Selection, mapper meta.RESTMapper) bool {
	if mapper == nil || strings.ContainsAny(s.Group+s.Version+s.Kind, "*?") {
		return false
	}
	m, err := mapper.RESTMapping(schema.GroupKind{Group: s.Group, Kind: s.Kind}, s.Version)
	return err == nil && m.Scope.Name() == meta.RESTScopeNameRoot
}
