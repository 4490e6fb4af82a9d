package mutatingpolicy

import (
	"slices"
	"strings"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/cel"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/policydecode"
)

func lintVersion(n policydecode.Node) {
	switch version := strings.TrimPrefix(n.Text(), group+"/"); version {
	case "v1", "v1beta1":
	case "v1alpha1":
		n.Lint("v1alpha1 is deprecated; v1 has the same fields")
	default:
		n.Lint("version %s is not known here, and read as v1; the versions are v1, v1beta1 and v1alpha1", version)
	}
}

// lint warns about what is probably not meant, and about what Kyverno does differently.
func (p *policy) lint() {
	switch constraints := p.at("matchConstraints"); {
	case len(p.Constraints.Rules) == 0:
		constraints.Lint("has no resourceRules, so it matches everything; Kyverno's webhook refuses such a policy")
	case p.Constraints.OnlySubresources():
		constraints.Lint("only matches requests for subresources, so it never matches an object")
	}
	for _, list := range p.empty {
		p.lintEmpty(list)
	}
	if p.existing {
		p.lintExisting()
	} else {
		p.lintUnused()
	}
	isJSONPatch := func(m cel.Source) bool { return m.JSONPatch }
	if len(p.derivations()) > 0 && slices.ContainsFunc(p.mutations, isJSONPatch) {
		p.at("mutations").Lint("Kyverno also applies this policy to Pod controllers, but does not rewrite the paths of JSON patches, so they miss the Pod template; " +
			"autogen.podControllers.controllers: [] keeps it to Pods")
	}
}

// lintEmpty warns about a list of a resource rule that is empty. Kyverno does not read the
// operations of targets, nor any when it changes existing objects.
func (p *policy) lintEmpty(list policydecode.Node) {
	operations := strings.HasSuffix(list.Path, ".operations")
	switch targets := strings.HasPrefix(list.Path, "spec.targetMatchConstraints."); {
	case targets && operations:
	case targets:
		list.Lint("is empty, so the rule names no target")
	case operations && p.existing:
		list.Lint("is empty, so no request triggers the policy; Kyverno changes existing objects all the same")
	default:
		list.Lint(`is empty, so the rule matches nothing; "*" matches everything`)
	}
}

func (p *policy) lintExisting() {
	if p.targets == nil && len(p.conditions) > 0 {
		p.at("matchConditions").Lint("Kyverno 1.19 does not look at matchConditions when it mutates existing objects (kyverno/kyverno#17411): it changes every object that " +
			"matchConstraints select. This program honours them, as Kyverno did up to 1.18; targetMatchConditions mean the same to both")
	}
	if p.targets != nil && slices.ContainsFunc(p.targets.Selections(""), isWildcard) {
		p.at("targetMatchConstraints").Lint("Kyverno finds no target through \"*\", and neither does this program: name groups, versions and resources")
	}
}

// lintUnused warns about fields that only matter to policies that mutate existing objects.
func (p *policy) lintUnused() {
	if p.targets != nil {
		p.at("targetMatchConstraints").Lint("evaluation.mutateExisting is not enabled, and a policy with targets changes nothing on admission, so this one has no effect")
	}
	if len(p.targetConditions) > 0 {
		p.at("targetMatchConditions").Lint("has no effect: evaluation.mutateExisting is not enabled")
	}
}
