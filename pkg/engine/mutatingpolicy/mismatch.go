package mutatingpolicy

import (
	"fmt"
	"slices"
	"strings"
)

// Mismatch is the reason why constraints do not select a request; the zero value
// is none. Its text is made by Reason, so that nobody pays for what is not shown.
type Mismatch struct {
	criterion criterion
	of        *Constraints // nil where the criterion says it all
}

type criterion string

const (
	byNamespaceSelector criterion = "namespaceSelector"
	byObjectSelector    criterion = "objectSelector"
	byExclusion         criterion = "excludeResourceRules"
	byOperation         criterion = "operations"
	byResource          criterion = "resourceRules"
	byVersion           criterion = "apiVersions"
	byDeletion          criterion = "an object that is being deleted is not mutated"
)

// OutsideNamespace is why a namespaced policy passes over objects elsewhere.
func OutsideNamespace(namespace string) Mismatch {
	return Mismatch{criterion: criterion("the policy only sees objects in namespace " + namespace)}
}

// Spared is why nothing is mutated on its deletion.
func Spared() Mismatch { return Mismatch{criterion: byDeletion} }

// None tells whether the request is selected.
func (m Mismatch) None() bool { return m == Mismatch{} }

// ByOperation tells whether a rule would have selected the request but for its
// operation.
func (m Mismatch) ByOperation() bool { return m.criterion == byOperation }

// Versions are those for which a rule would have selected the object, where it is
// only the version that it was read in for which there is none.
func (m Mismatch) Versions() []string {
	if m.criterion != byVersion {
		return nil
	}
	var out []string
	for i := range m.of.rules {
		out = append(out, m.of.rules[i].versions...)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// NotMatchedError is why a policy passes over an object.
type NotMatchedError struct {
	Criterion string // a field of the constraints, or the whole reason
	Wanted    string
	Seen      string // what there is instead, with its verb
}

// Error says what the constraints want, and what is there.
func (e *NotMatchedError) Error() string {
	if e.Wanted == "" {
		return e.Criterion
	}
	return fmt.Sprintf("%s: wants %s, %s", e.Criterion, e.Wanted, e.Seen)
}

// Reason renders a mismatch for those who asked. That the rules name other
// resources says more than what else does not hold.
func (m Mismatch) Reason(r *Candidate) error {
	e := &NotMatchedError{Criterion: string(m.criterion)}
	if m.of == nil {
		return e
	}
	if len(m.of.rules) > 0 && !m.of.namesResource(r) {
		e.Criterion = string(byResource)
	}
	switch criterion(e.Criterion) {
	case byNamespaceSelector:
		of, _ := r.ownNamespaceLabels() // they were there when they did not match
		e.Wanted, e.Seen = m.of.namespaces.String(), "the Namespace "+m.of.namespaces.Seen(of)
	case byObjectSelector:
		e.Wanted, e.Seen = m.of.objects.String(), m.of.objects.Seen(r.Object.GetLabels())
	case byOperation:
		e.Wanted, e.Seen = m.of.operations(), "is "+string(r.Operation)
	case byResource, byVersion:
		e.Wanted, e.Seen = ruleTexts(m.of.rules), "is "+r.text()
	default:
		e.Wanted, e.Seen = "none of "+ruleTexts(m.of.excluded), "is "+r.text()
	}
	return e
}

// namesResource tells whether a rule names the resource, in whatever version.
func (c *Constraints) namesResource(r *Candidate) bool {
	asked := *r
	asked.Operation, asked.anyVersion = "", true
	return anyFor(c.rules, &asked)
}

func (r *Candidate) text() string {
	text := r.Resource.Resource
	if r.Key.Subresource != "" {
		text += "/" + r.Key.Subresource
	}
	return fmt.Sprintf("%s of %s named %q", text, r.Resource.GroupVersion(), r.Object.GetName())
}

func (c *Constraints) operations() string {
	var all []string
	for i := range c.rules {
		all = append(all, c.rules[i].operations...)
	}
	slices.Sort(all)
	return strings.Join(slices.Compact(all), " or ")
}

func ruleTexts(rules []resourceRule) string {
	texts := make([]string, len(rules))
	for i := range rules {
		texts[i] = rules[i].String()
	}
	return strings.Join(texts, ", or ")
}

// String is "pods, pods/status of v1 named a", without the operations.
func (x *resourceRule) String() string {
	names := make([]string, len(x.resources))
	for i, known := range x.resources {
		if names[i] = known.name; known.subresource != "" {
			names[i] += "/" + known.subresource
		}
	}
	var versions []string
	for _, group := range x.groups {
		for _, version := range x.versions {
			versions = append(versions, strings.TrimPrefix(group+"/"+version, "/"))
		}
	}
	text := strings.Join(names, ", ") + " of " + strings.Join(versions, ", ")
	if len(x.names) > 0 {
		text += " named " + strings.Join(x.names, ", ")
	}
	if x.scope != "" && x.scope != "*" {
		text += " in scope " + x.scope
	}
	return text
}
