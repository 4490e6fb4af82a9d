package cel

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/plugin/webhook/predicates/rules"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
)

// Candidate is an admission request to match with constraints.
type Candidate struct {
	Resource    schema.GroupVersionResource
	Subresource string
	Operation   engine.Operation // if empty, every rule matches
	Namespace   string           // of the object; for a Namespace its own name, or empty
	Name        string
	// GenerateName is the prefix of a name that the server has yet to complete. It replaces an empty Name; if it
	// is empty, an unknown name matches none.
	GenerateName      string
	Object, OldObject *unstructured.Unstructured // OldObject is nil on creation
	// NamespaceLabels returns the labels of the object's Namespace.
	NamespaceLabels func(keys []string) (map[string]string, error)
	// Served reports whether the resource is also served in a version.
	Served func(version string) bool
}

// CandidateOf returns the request of an operation on a target. The context is the evaluation's.
func CandidateOf(
	ctx context.Context, t *engine.Target, w *engine.World, operation engine.Operation,
) *Candidate {
	return &Candidate{
		Resource: ResourceOf(t, w), Subresource: t.Key.Subresource, Operation: operation,
		Namespace: t.Key.Namespace, Name: t.Key.Name,
		Object: t.Object, OldObject: t.OldObject,
		NamespaceLabels: func(keys []string) (map[string]string, error) { return t.NamespaceLabels(ctx, w, keys) },
		Served: func(version string) bool {
			if w.Mapper == nil {
				return false
			}
			m, err := w.Mapper.RESTMapping(t.Key.GroupKind, version)
			return err == nil && m.GroupVersionKind.Version == version
		},
	}
}

// ResourceOf returns the resource of an object: from the target, else from the mapper, else the usual plural
// of the kind.
func ResourceOf(t *engine.Target, w *engine.World) schema.GroupVersionResource {
	if t.Mapping != nil {
		return t.Mapping.Resource
	}
	gvk := t.Key.GroupVersionKind()
	if w.Mapper != nil {
		if m, err := w.Mapper.RESTMapping(gvk.GroupKind(), gvk.Version); err == nil {
			return m.Resource
		}
	}
	plural, _ := meta.UnsafeGuessKindToResource(gvk)
	return plural
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

// unmet returns the Match for an unmet criterion. A mismatch of resources takes precedence.
func (c *Constraints) unmet(k *Candidate, criterion string, values func() (wanted, found string)) Match {
	return Match{Why: func() error {
		if len(c.Rules) > 0 && !k.named(c.Rules, false, false) {
			return engine.Mismatch{Criterion: "resourceRules", Wanted: ruleTexts(c.Rules), Found: "is " + k.String()}
		}
		wanted, found := values()
		return engine.Mismatch{Criterion: criterion, Wanted: wanted, Found: found}
	}}
}

// Match matches a candidate with the constraints. The error is from Candidate.NamespaceLabels.
func (c *Constraints) Match(k *Candidate) (Match, error) {
	switch {
	case c.Objects != nil && !c.Objects.Matches(k.Object.GetLabels()) &&
		(k.OldObject == nil || !c.Objects.Matches(k.OldObject.GetLabels())):
		return c.unmet(k, "objectSelector", func() (string, string) {
			return c.Objects.String(), engine.FoundLabels(k.Object.GetLabels(), c.Objects)
		}), nil
	case k.named(c.Excluded, true, true) || c.Equivalent && k.otherVersion(c.Excluded, true) != "":
		return c.unmet(k, "excludeResourceRules",
			func() (string, string) { return "none of " + ruleTexts(c.Excluded), "is " + k.String() }), nil
	}
	m := c.matchRules(k)
	if !m.Applies() || c.Namespaces == nil || k.Namespace == "" && !k.isNamespace() {
		return m, nil // cluster-scoped objects have no Namespace to select
	}
	labels, err := k.Object.GetLabels(), error(nil)
	if !k.isNamespace() {
		labels, err = k.NamespaceLabels(c.Namespaces.Keys())
	}
	switch {
	case err != nil:
		return m, fmt.Errorf("namespaceSelector: %w", err)
	case !c.Namespaces.Matches(labels):
		return c.unmet(k, "namespaceSelector", func() (string, string) {
			return c.Namespaces.String(), "the Namespace " + engine.FoundLabels(labels, c.Namespaces)
		}), nil
	}
	return m, nil
}

// matchRules matches a candidate with the resource rules: first its own version, in all rules.
func (c *Constraints) matchRules(k *Candidate) Match {
	if len(c.Rules) == 0 || k.named(c.Rules, true, true) {
		return Match{}
	}
	if c.Equivalent {
		if version := k.otherVersion(c.Rules, true); version != "" {
			return Match{Version: version}
		}
	}
	other := k.otherVersion(c.Rules, false)
	if k.named(c.Rules, true, false) || c.Equivalent && other != "" {
		return c.unmet(k, "operations", func() (string, string) { return c.operationTexts(), "is " + string(k.Operation) })
	}
	m := c.unmet(k, "apiVersions", func() (string, string) { return ruleTexts(c.Rules), "is " + k.String() })
	m.Version = other
	return m
}

func (k *Candidate) isNamespace() bool {
	return k.Resource.Group == "" && k.Resource.Resource == "namespaces"
}

// The values that match everything.
//
//nolint:gochecknoglobals // which nobody changes
var (
	anyVersion   = []string{"*"}
	anyOperation = []admissionregistrationv1.OperationType{admissionregistrationv1.OperationAll}
)

// named reports, like an API server, whether a rule names the candidate: in its version or any, and with its
// operation or any.
func (k *Candidate) named(all []Rule, version, operation bool) bool {
	if len(all) == 0 {
		return false
	}
	attributes := k.attributes()
	return slices.ContainsFunc(all, func(r Rule) bool {
		if !version {
			r.APIVersions = anyVersion
		}
		if !operation || k.Operation == "" {
			r.Operations = anyOperation
		}
		m := rules.Matcher{Rule: r.RuleWithOperations, Attr: attributes}
		return m.Matches() && k.hasName(r.ResourceNames)
	})
}

// attributes returns the request as an API server describes it.
func (k *Candidate) attributes() admission.Attributes {
	return admission.NewAttributesRecord(nil, nil, schema.GroupVersionKind{}, k.Namespace, k.Name,
		k.Resource, k.Subresource,
		admission.Operation(k.Operation), nil, false, nil)
}

// otherVersion returns the first served version, other than the candidate's, in which a rule names it.
func (k *Candidate) otherVersion(all []Rule, operation bool) string {
	for i := range all {
		for _, version := range all[i].APIVersions {
			if version != k.Resource.Version && version != "*" && k.named(all[i:i+1], false, operation) &&
				k.Served(version) {
				return version
			}
		}
	}
	return ""
}

func (k *Candidate) hasName(names []string) bool {
	if k.Name == "" && k.GenerateName != "" && len(names) > 0 {
		return slices.ContainsFunc(names, func(name string) bool { return strings.HasPrefix(k.GenerateName, name) })
	}
	return len(names) == 0 || slices.Contains(names, k.Name)
}

// String is like `pods/status of v1 named "web"`.
func (k *Candidate) String() string {
	resource := strings.TrimSuffix(k.Resource.Resource+"/"+k.Subresource, "/")
	return fmt.Sprintf("%s of %s named %q", resource, k.Resource.GroupVersion(), k.Name)
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
