package structured

import "github.com/kubectl-mutate/kubectl-mutate/pkg/engine"

// Object names an object.
type Object struct {
	APIVersion  string `json:"apiVersion"`
	Kind        string `json:"kind"`
	Subresource string `json:"subresource,omitempty"`
	Namespace   string `json:"namespace,omitempty"`
	Name        string `json:"name"`
	UID         string `json:"uid,omitempty"`
}

// Rule names a rule, and how it came to apply.
type Rule struct {
	Dialect string `json:"dialect"`
	Policy  string `json:"policy"`
	Rule    string `json:"rule,omitempty"`
	Via     string `json:"via,omitempty"`
	Origin  string `json:"origin,omitempty"`
}

// ObjectOf names an object.
func ObjectOf(k engine.ObjectKey) Object {
	return Object{
		APIVersion: k.GroupVersionKind().GroupVersion().String(), Kind: k.Kind, Subresource: k.Subresource,
		Namespace: k.Namespace, Name: k.Name, UID: string(k.UID),
	}
}

// RuleOf names a rule.
func RuleOf(r engine.RuleRef) Rule {
	return Rule(r)
}
