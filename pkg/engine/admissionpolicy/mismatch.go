package admissionpolicy

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// MismatchError is why constraints do not select a request.
type MismatchError struct {
	Criterion string // a field of the constraints
	Wanted    string
	Seen      string // what there is instead, with its verb
}

// Error says what the constraints want, and what is there.
func (e *MismatchError) Error() string {
	return fmt.Sprintf("%s: wants %s, %s", e.Criterion, e.Wanted, e.Seen)
}

// Reason renders a miss for those who asked. That the rules name other resources
// says more than what else does not hold.
func (c *Constraints) Reason(m Miss, r *Request) error {
	if named, _ := c.find(c.Rules, r, true); !named && len(c.Rules) > 0 {
		m = ByResource
	}
	switch m {
	case ByOperation:
		return &MismatchError{"operations", c.operations(), "is " + string(r.Operation)}
	case ByExclusion:
		return &MismatchError{"excludeResourceRules", "none of " + ruleTexts(c.Excluded), "is " + r.text()}
	case ByObjectSelector:
		return &MismatchError{"objectSelector", c.Objects.String(), c.Objects.Seen(r.Object.GetLabels())}
	case ByNamespaceSelector:
		of, _ := r.labelsOfNamespace() // they were there when they did not match
		return &MismatchError{"namespaceSelector", c.Namespaces.String(), "the Namespace " + c.Namespaces.Seen(of)}
	default:
		return &MismatchError{"resourceRules", ruleTexts(c.Rules), "is " + r.text()}
	}
}

func (r *Request) text() string {
	resource := strings.TrimSuffix(r.Resource.Resource+"/"+r.Subresource, "/")
	return fmt.Sprintf("%s of %s named %q", resource, r.Resource.GroupVersion(), r.Name)
}

func (c *Constraints) operations() string {
	var all []string
	for i := range c.Rules {
		all = append(all, c.Rules[i].Operations...)
	}
	slices.Sort(all)
	return cmp.Or(strings.Join(slices.Compact(all), " or "), "none")
}

func ruleTexts(rules []Rule) string {
	texts := make([]string, len(rules))
	for i := range rules {
		texts[i] = rules[i].String()
	}
	return strings.Join(texts, ", or ")
}

// String is "deployments, deployments/scale of apps/v1 named a", without the
// operations.
func (x *Rule) String() string {
	var versions []string
	for _, group := range x.Groups {
		for _, version := range x.Versions {
			versions = append(versions, schema.GroupVersion{Group: group, Version: version}.String())
		}
	}
	text := strings.Join(x.Resources, ", ") + " of " + strings.Join(versions, ", ")
	if len(x.Names) > 0 {
		text += " named " + strings.Join(x.Names, ", ")
	}
	if x.Scope == "Namespaced" || x.Scope == "Cluster" {
		text += " in scope " + x.Scope
	}
	return text
}
