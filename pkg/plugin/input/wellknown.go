package input

import (
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
)

// wellKnownInput reports whether objects of a kind are commonly kept beside
// policies because policies read them, whatever dialects take part in the run:
// what describes namespaces and users, what holds data, what defines kinds, and
// the engines' own inputs.
func wellKnownInput(kind schema.GroupKind) bool {
	switch kind.Group {
	case "":
		return kind.Kind == "Namespace" || kind.Kind == "ConfigMap" || kind.Kind == "Secret" || kind.Kind == "ServiceAccount"
	case "rbac.authorization.k8s.io":
		return true
	case "apiextensions.k8s.io":
		return kind.Kind == "CustomResourceDefinition"
	case "admissionregistration.k8s.io":
		return kind.Kind == "MutatingAdmissionPolicyBinding"
	case "kyverno.io":
		return kind.Kind == "PolicyException" || kind.Kind == "GlobalContextEntry"
	case "policies.kyverno.io":
		return kind.Kind == "PolicyException"
	case "config.gatekeeper.sh":
		return kind.Kind == "Config"
	}
	return false
}

// parameterKinds collects the kinds that policies name as those of their
// parameters (spec.paramKind): only the policy says that they are inputs.
func parameterKinds(documents []engine.Document) map[schema.GroupKind]bool {
	kinds := map[schema.GroupKind]bool{}
	for _, d := range documents {
		// A malformed paramKind is for the dialect to report.
		kind, _ := d.Field("spec", "paramKind", "kind").(string)
		version, _ := d.Field("spec", "paramKind", "apiVersion").(string)
		if gv, err := schema.ParseGroupVersion(version); err == nil && kind != "" {
			kinds[schema.GroupKind{Group: gv.Group, Kind: kind}] = true
		}
	}
	return kinds
}
