package cel

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/plugin/webhook/predicates/rules"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
)

// Candidate is an admission request to match with constraints.
type Candidate struct {
	ctx       context.Context // of the evaluation, which it does not outlive
	world     *engine.World
	Target    *engine.Target // its key may say that a Namespace is in the namespace of its own name
	Resource  schema.GroupVersionResource
	Operation engine.Operation // if empty, every rule matches
	// GenerateName is the prefix of a name that the server has yet to complete. It replaces an empty name; if it
	// is empty, an unknown name matches none.
	GenerateName string
}

// CandidateOf returns the request of an operation on a target. The context is the evaluation's.
func CandidateOf(
	ctx context.Context, t *engine.Target, w *engine.World, operation engine.Operation,
) *Candidate {
	return &Candidate{ctx: ctx, Target: t, world: w, Resource: t.Resource(w), Operation: operation}
}

// served reports whether the resource is also served in a version.
func (k *Candidate) served(version string) bool {
	if k.world.Mapper == nil {
		return false
	}
	m, err := k.world.Mapper.RESTMapping(k.Target.Key.GroupKind, version)
	return err == nil && m.GroupVersionKind.Version == version
}

// Match is the result of matching a candidate with constraints.
type Match struct {
	// Why returns the unmet constraint; it is nil if the constraints match. It costs nothing until called.
	Why func() error
	// Version is a served version in which a rule names the resource, if none names the candidate's. With
	// equivalent versions the constraints match in it; else only the version keeps them from matching.
	Version string
}

// NotApplicable is the Match of a candidate that a language never mutates, whatever the constraints; reason
// is a sentence.
func NotApplicable(reason string) Match {
	return Match{Why: func() error { return engine.Mismatch{Criterion: reason} }}
}

// Applies reports whether the constraints match.
func (m Match) Applies() bool { return m.Why == nil }

// unmet returns the Match for an unmet criterion.
func unmet(criterion string, wanted, found func() string) Match {
	return Match{Why: func() error {
		return engine.Mismatch{Criterion: criterion, Wanted: wanted(), Found: found()}
	}}
}

// Match matches a candidate with the constraints. The error is about its Namespace.
func (c *Constraints) Match(k *Candidate) (m Match, err error) {
	found, object, old := func() string { return "is " + k.String() }, k.Target.Object, k.Target.OldObject
	named, excluded := k.namedBy(c.Rules), k.namedBy(c.Excluded)
	switch {
	case len(c.Rules) > 0 && !named.resource:
		return unmet("resourceRules", c.Rules.String, found), nil
	case c.Objects != nil && !c.Objects.Matches(object.GetLabels()) &&
		(old == nil || !c.Objects.Matches(old.GetLabels())):
		return unmet("objectSelector", c.Objects.String,
			func() string { return engine.FoundLabels(object.GetLabels(), c.Objects) }), nil
	case excluded.exactly || c.Equivalent && excluded.equivalent != "":
		return unmet("excludeResourceRules", func() string { return "none of " + c.Excluded.String() }, found), nil
	case len(c.Rules) == 0 || named.exactly:
	case c.Equivalent && named.equivalent != "":
		m.Version = named.equivalent
	case named.version || c.Equivalent && named.other != "":
		return unmet("operations", c.operationTexts, func() string { return "is " + string(k.Operation) }), nil
	default:
		m = unmet("apiVersions", c.Rules.String, found)
		m.Version = named.other
		return m, nil
	}
	if c.Namespaces == nil || k.Target.Key.Namespace == "" && !k.isNamespace() {
		return m, nil // cluster-scoped objects have no Namespace to select
	}
	labels := object.GetLabels()
	if !k.isNamespace() {
		if labels, err = k.Target.NamespaceLabels(k.ctx, k.world, c.Namespaces.Keys()); err != nil {
			return m, fmt.Errorf("namespaceSelector: %w", err)
		}
	}
	if !c.Namespaces.Matches(labels) {
		return unmet("namespaceSelector", c.Namespaces.String,
			func() string { return "the Namespace " + engine.FoundLabels(labels, c.Namespaces) }), nil
	}
	return m, nil
}

func (k *Candidate) isNamespace() bool {
	return k.Resource.Group == "" && k.Resource.Resource == "namespaces"
}

// naming says how rules name a candidate.
type naming struct {
	resource          bool   // in some version, for some operation
	version, exactly  bool   // in its version: for some operation, for its own
	other, equivalent string // in another served version, the first one: for some operation, for its own
}

// namedBy reads rules like an API server.
func (k *Candidate) namedBy(all Rules) (out naming) {
	for _, r := range all {
		operation := k.Operation == "" || slices.Contains(r.Operations, admissionregistrationv1.OperationAll) ||
			slices.Contains(r.Operations, admissionregistrationv1.OperationType(k.Operation))
		versions := r.APIVersions
		r.APIVersions, r.Operations = []string{"*"}, []admissionregistrationv1.OperationType{"*"}
		m := rules.Matcher{Rule: r.RuleWithOperations, Attr: k.attributes()}
		if !m.Matches() || !k.hasName(r.ResourceNames) {
			continue
		}
		out.resource = true
		for _, version := range versions {
			switch {
			case version == "*" || version == k.Resource.Version:
				out.version, out.exactly = true, out.exactly || operation
			case k.served(version):
				out.other = cmp.Or(out.other, version)
				if operation {
					out.equivalent = cmp.Or(out.equivalent, version)
				}
			}
		}
	}
	return out
}

// attributes returns the request as an API server describes it.
func (k *Candidate) attributes() admission.Attributes {
	key := k.Target.Key
	return admission.NewAttributesRecord(nil, nil, schema.GroupVersionKind{}, key.Namespace, key.Name,
		k.Resource, key.Subresource, admission.Operation(k.Operation), nil, false, nil)
}

func (k *Candidate) hasName(names []string) bool {
	name := k.Target.Key.Name
	return len(names) == 0 || slices.Contains(names, name) || name == "" && k.GenerateName != "" &&
		slices.ContainsFunc(names, func(prefix string) bool { return strings.HasPrefix(k.GenerateName, prefix) })
}

// String is like `pods/status of v1 named "web"`.
func (k *Candidate) String() string {
	resource := strings.TrimSuffix(k.Resource.Resource+"/"+k.Target.Key.Subresource, "/")
	return fmt.Sprintf("%s of %s named %q", resource, k.Resource.GroupVersion(), k.Target.Key.Name)
}

func (c *Constraints) operationTexts() string {
	var all []string
	for i := range c.Rules {
		for _, o := range c.Rules[i].Operations {
			all = append(all, string(o))
		}
	}
	slices.Sort(all)
	return cmp.Or(strings.Join(slices.Compact(all), " or "), "none")
}
