package inventory

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Deprecation says what takes the place of a kind, or of a version of it; empty
// for what has a future.
func Deprecation(gvk schema.GroupVersionKind) string {
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

func labelsText(l *metav1.LabelSelector) string {
	if l == nil || len(l.MatchLabels)+len(l.MatchExpressions) == 0 {
		return ""
	}
	return metav1.FormatLabelSelector(l)
}
