package policies

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// deprecation returns the notice for a deprecated kind or version; empty for others.
func deprecation(gvk schema.GroupVersionKind) string {
	switch gvk.Group {
	case "kyverno.io":
		if gvk.Kind == "ClusterPolicy" {
			return "ClusterPolicy leaves Kyverno in 1.20; MutatingPolicy of policies.kyverno.io/v1 takes its place"
		}
		if gvk.Kind == "Policy" {
			return "Policy leaves Kyverno in 1.20; NamespacedMutatingPolicy of policies.kyverno.io/v1 takes its place"
		}
	case "policies.kyverno.io":
		if gvk.Version == "v1alpha1" {
			return "v1alpha1 is deprecated; v1 has the same fields"
		}
	case "admissionregistration.k8s.io":
		switch gvk.Version {
		case "v1alpha1":
			return "v1alpha1 is deprecated since Kubernetes 1.35 and gone in 1.38; v1 is there since 1.36"
		case "v1beta1":
			return "v1beta1 is deprecated since Kubernetes 1.37 and gone in 1.40; v1 is there since 1.36"
		}
	}
	return ""
}

// deprecations collects deprecated policies by their notices.
type deprecations struct {
	reasons  []string // in the order of the policies
	policies map[string][]*Policy
}

// add adds a policy, unless one of its problems says the same.
func (d *deprecations) add(p *Policy) {
	reported := slices.ContainsFunc(p.Problems, func(x Problem) bool { return x.Field == "apiVersion" })
	if p.Deprecated == "" || reported {
		return
	}
	if d.policies == nil {
		d.policies = map[string][]*Policy{}
	}
	if d.policies[p.Deprecated] == nil {
		d.reasons = append(d.reasons, p.Deprecated)
	}
	d.policies[p.Deprecated] = append(d.policies[p.Deprecated], p)
}

// lines has one for each reason.
func (d *deprecations) lines() []string {
	out := make([]string, len(d.reasons))
	for i, reason := range d.reasons {
		all := d.policies[reason]
		who := all[0].Kind + " " + all[0].Name
		if len(all) > 1 {
			who = fmt.Sprintf("%d objects of kind %s", len(all), all[0].Kind)
		}
		out[i] = who + ": " + reason
	}
	return out
}
