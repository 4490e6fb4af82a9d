package policies

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// deprecations are the notices for kinds and versions; empty stands for all.
//
//nolint:gochecknoglobals // an immutable table
var deprecations = []struct{ group, version, kind, notice string }{
	{"kyverno.io", "", "ClusterPolicy", "ClusterPolicy leaves Kyverno in 1.20; MutatingPolicy of policies.kyverno.io/v1 takes its place"},
	{"kyverno.io", "", "Policy", "Policy leaves Kyverno in 1.20; NamespacedMutatingPolicy of policies.kyverno.io/v1 takes its place"},
	{"policies.kyverno.io", "v1alpha1", "", "v1alpha1 is deprecated; v1 has the same fields"},
	{"admissionregistration.k8s.io", "v1alpha1", "", "v1alpha1 is deprecated since Kubernetes 1.35 and gone in 1.38; v1 is there since 1.36"},
	{"admissionregistration.k8s.io", "v1beta1", "", "v1beta1 is deprecated since Kubernetes 1.37 and gone in 1.40; v1 is there since 1.36"},
}

// deprecation returns the notice for a deprecated kind or version; empty for others.
func deprecation(gvk schema.GroupVersionKind) string {
	for _, d := range deprecations {
		if d.group == gvk.Group && (d.version == "" || d.version == gvk.Version) && (d.kind == "" || d.kind == gvk.Kind) {
			return d.notice
		}
	}
	return ""
}

// deprecated returns a line for each notice, without the policies of which a problem says the same.
func (l *List) deprecated() []string {
	var notices, out []string
	of := map[string][]*Policy{}
	for i := range l.Policies {
		p := &l.Policies[i]
		if p.Deprecated == "" || slices.ContainsFunc(p.Problems, func(x Problem) bool { return x.Field == "apiVersion" }) {
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
