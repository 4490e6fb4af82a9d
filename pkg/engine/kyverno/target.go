package kyverno

import (
	"cmp"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/kyverno/match"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/kyverno/variables"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/policydecode"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/selector"
)

// target is one compiled entry of mutate.targets: immutable.
type target struct {
	field         string // in the rule: "mutate.targets[0]"
	context       Entries
	preconditions *match.Conditions // may be nil

	template *variables.Template // of the fields that name the objects
	written  map[string]string   // these fields, as the policy has them
	own      string              // the namespace of a Policy and its targets
	labels   *metav1.LabelSelector
}

func decodeTarget(n policydecode.Node) *target {
	f := n.Fields()
	t := &target{field: n.PathInRule(), own: n.Report.Namespace, written: map[string]string{}}
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
	if kind, err := parseKind(t.written["apiVersion"], t.written["kind"]); err == nil &&
		!variables.Used(t.written["apiVersion"]+t.written["kind"]) {
		f.At("kind").LintKind(engine.KindName{
			Groups: []string{kind.Group}, Versions: []string{kind.Version},
			Kind: kind.Kind, Subresource: kind.Subresource,
		})
	}
	if s := f.At("selector"); s.Value != nil {
		t.labels = s.LabelSelector()
		naming["selector"] = s.Value
	}
	if ns := t.written["namespace"]; t.own != "" && ns != "" && ns != t.own {
		f.At("namespace").Refuse(kyvernoName, "a Policy only changes objects in its own namespace %s", t.own)
	}
	t.template = variables.Decode(policydecode.Node{Report: n.Report, Rule: n.Rule, Path: n.Path, Value: naming})
	t.context = DecodeEntries(f.At("context"))
	t.preconditions = match.DecodeConditions(f.At("preconditions"))
	f.Accept("uid")
	f.Done()
	return t
}

// lintTargetKinds warns of targets with different schemas, which Kyverno's documentation forbids in one rule.
func lintTargetKinds(n policydecode.Node, targets []*target) {
	for _, t := range targets {
		if first := targets[0].written["kind"]; t.written["kind"] != first {
			n.Lint("changes both %s and %s; Kyverno's documents want one kind in a rule", first, t.written["kind"])
			return
		}
	}
}

// subjects returns the objects to change, with the trigger's variables resolved; the mapper, which may be
// nil, knows cluster-scoped kinds. The error is a *RuleError.
func (t *target) subjects(s *variables.Scope, mapper meta.RESTMapper) (engine.Selection, error) {
	rendered, err := t.template.Render(s)
	if err != nil {
		return engine.Selection{}, &RuleError{t.field, fmt.Errorf("failed to substitute variables: %w", err)}
	}
	naming, _ := rendered.(map[string]any)
	parts := map[string]string{}
	for _, key := range []string{"apiVersion", "kind", "name", "namespace"} {
		value, ok := naming[key].(string)
		if (!ok || value == "") && t.written[key] != "" {
			return engine.Selection{}, &RuleError{t.field + "." + key, fmt.Errorf(
				"%s evaluates to nothing, which would stand for all; check the expression", t.written[key])}
		}
		parts[key] = strings.Clone(value) // it may share the trigger's memory
	}
	kind, err := parseKind(parts["apiVersion"], parts["kind"])
	if err != nil {
		return engine.Selection{}, &RuleError{t.field + ".kind", err}
	}
	out := engine.Selection{
		Group: kind.Group, Version: kind.Version, Kind: kind.Kind, Subresource: kind.Subresource,
		Namespace: parts["namespace"], Name: parts["name"],
	}
	if t.own != "" {
		out.Namespace = t.own
	}
	if wanted := naming["selector"]; wanted != nil {
		if out.Labels, err = policydecode.LabelSelector(wanted); err != nil {
			return out, &RuleError{t.field + ".selector", err}
		}
	}
	return narrow(out, mapper), nil
}

// described returns a target without its trigger, with engine.Computed for values from the trigger.
func (t *target) described() engine.Selection {
	kind, err := parseKind(t.written["apiVersion"], t.written["kind"])
	if err != nil || variables.Used(t.written["apiVersion"]+t.written["kind"]) {
		kind = selector.Kind{Group: "*", Kind: "*"}
	}
	return engine.Selection{
		Group: kind.Group, Version: kind.Version, Kind: kind.Kind, Subresource: kind.Subresource,
		Namespace: cmp.Or(t.own, variables.Plain(t.written["namespace"])),
		Name:      variables.Plain(t.written["name"]), Labels: t.labels,
	}
}

// parseKind reads apiVersion and kind, both with optional wildcards, like match blocks do; but a plain "v1"
// is the core group, as in any manifest, not version v1 of every group as in Kyverno.
func parseKind(apiVersion, kind string) (selector.Kind, error) {
	out, err := selector.ParseKind(apiVersion + "/" + kind)
	if err == nil && out.Group == "*" && out.Version == apiVersion && !selector.HasWildcard(apiVersion) {
		out.Group = ""
	}
	return out, err
}

// narrow applies Kyverno's conventions to a selection: a plain name and namespace ignore the selector; a name
// without a namespace is one cluster-scoped object, or that name in every namespace.
func narrow(s engine.Selection, mapper meta.RESTMapper) engine.Selection {
	plainName := s.Name != "" && !selector.HasWildcard(s.Name)
	if plainName && s.Namespace != "" && !selector.HasWildcard(s.Namespace) {
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
