package engine

import (
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/selector"
)

// IgnoreAnnotation is the annotation of an object that rules ignore, as their match and as a target: "true"
// for all rules, or a comma-separated list of policies and POLICY/RULE, with wildcards.
const IgnoreAnnotation = "kubectl-mutate/ignore"

// Ignored says which rules ignore an object. The zero value is none.
type Ignored struct {
	Rules string // as in IgnoreAnnotation
	Why   string
}

// IgnoredBy reads the IgnoreAnnotation of an object.
func IgnoredBy(u *unstructured.Unstructured) Ignored {
	rules, _, _ := unstructured.NestedFieldNoCopy(u.Object, "metadata", "annotations", IgnoreAnnotation)
	text, _ := rules.(string)
	return Ignored{Rules: text, Why: "by the annotation " + IgnoreAnnotation}
}

// By returns an *IgnoredError if a rule ignores the object, else nil.
func (i Ignored) By(r RuleRef) error {
	if i.Rules == "" {
		return nil
	}
	for _, pattern := range strings.Split(i.Rules, ",") {
		if pattern = strings.TrimSpace(pattern); pattern == "true" || selector.MatchWildcard(pattern, r.Policy) ||
			selector.MatchWildcard(pattern, r.String()) {
			return &IgnoredError{Why: i.Why}
		}
	}
	return nil
}

// IgnoredError is the reason why a matching rule ignores the object. Its step is Skipped.
type IgnoredError struct{ Why string }

// Error is "ignored, by ...".
func (e *IgnoredError) Error() string { return "ignored, " + e.Why }
