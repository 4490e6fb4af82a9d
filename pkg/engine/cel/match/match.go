package match

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
)

// Candidate is an admission request that constraints may select.
type Candidate struct {
	Resource    schema.GroupVersionResource
	Subresource string
	Operation   engine.Operation // empty for one that every rule names
	Namespace   string           // of the object; a Namespace may be in itself, or in none
	Name        string
	// GenerateName is the prefix of a name that the server has yet to complete. It
	// stands in for an empty Name; empty where a name that is not known matches none.
	GenerateName      string
	Object, OldObject *unstructured.Unstructured // OldObject is nil on creation
	Surroundings
}

// Surroundings is what constraints may ask for beside the request.
type Surroundings interface {
	// NamespaceLabels returns the labels of the object's Namespace.
	NamespaceLabels(keys []string) (map[string]string, error)
	// Served reports whether the resource is served in a version too.
	Served(version string) bool
}

// around are the Surroundings of a target.
type around struct {
	ctx    context.Context // a candidate does not outlive the evaluation
	target *engine.Target
	world  *engine.World
}

// CandidateOf returns the request of an operation on a target. The context is that of the evaluation.
func CandidateOf(ctx context.Context, t *engine.Target, w *engine.World, operation engine.Operation) Candidate {
	return Candidate{
		Resource: ResourceOf(t, w), Subresource: t.Key.Subresource, Operation: operation, Namespace: t.Key.Namespace, Name: t.Key.Name,
		Object: t.Object, OldObject: t.OldObject, Surroundings: around{ctx, t, w},
	}
}

// ResourceOf returns the resource of an object: from the target, or else from the mapper, or else the usual plural of
// the kind.
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

// NamespaceLabels returns the labels of the object's Namespace.
func (a around) NamespaceLabels(keys []string) (map[string]string, error) {
	return a.target.NamespaceLabels(a.ctx, a.world, keys)
}

// Served reports whether the object's kind is served in a version too.
func (a around) Served(version string) bool {
	if a.world.Mapper == nil {
		return false
	}
	m, err := a.world.Mapper.RESTMapping(a.target.Key.GroupKind, version)
	return err == nil && m.GroupVersionKind.Version == version
}

// Result is whether constraints select a candidate. It costs nothing until it is to be
// explained.
type Result struct {
	criterion criterion // that is not met; none where the constraints select the candidate
	// Version is a served version of the resource that a rule names, where none names
	// the candidate's. With equivalent versions the constraints select the candidate in
	// it; else the version is all that keeps them from it.
	Version string
}

type criterion string

const (
	none                criterion = ""
	byNamespaceSelector criterion = "namespaceSelector"
	byObjectSelector    criterion = "objectSelector"
	byExclusion         criterion = "excludeResourceRules"
	byOperation         criterion = "operations"
	byVersion           criterion = "apiVersions"
	byResource          criterion = "resourceRules"
)

// NotApplicable is the Result for a candidate that a language never mutates, whatever the
// constraints select; reason is a whole sentence.
func NotApplicable(reason string) Result { return Result{criterion: criterion(reason)} }

// Applies reports whether the constraints select the candidate.
func (r Result) Applies() bool { return r.criterion == none }

// ByOperation reports whether a rule names the candidate with other operations only.
func (r Result) ByOperation() bool { return r.criterion == byOperation }

// Match compares a candidate with the constraints. The error is that of
// Surroundings.NamespaceLabels.
func (c *Constraints) Match(k *Candidate) (Result, error) {
	switch {
	case c.Objects != nil && !c.Objects.Matches(k.Object.GetLabels()) && (k.OldObject == nil || !c.Objects.Matches(k.OldObject.GetLabels())):
		return Result{criterion: byObjectSelector}, nil
	case c.excludes(k):
		return Result{criterion: byExclusion}, nil
	}
	r := c.matchRules(k)
	if r.criterion == byResource || r.criterion == byVersion {
		return r, nil
	}
	switch selected, err := c.selectsNamespace(k); {
	case err != nil && !r.Applies(): // whatever the Namespace is
		return r, nil
	case err != nil:
		return r, fmt.Errorf("namespaceSelector: %w", err)
	case !selected:
		return Result{criterion: byNamespaceSelector}, nil
	}
	return r, nil
}

func (c *Constraints) excludes(k *Candidate) bool {
	return names(c.Excluded, k, k.Operation) || c.Equivalent && otherVersion(c.Excluded, k, k.Operation) != ""
}

// matchRules compares a candidate with the resource rules. Its own version comes
// first, in all rules.
func (c *Constraints) matchRules(k *Candidate) Result {
	if len(c.Rules) == 0 || names(c.Rules, k, k.Operation) {
		return Result{}
	}
	if c.Equivalent {
		if version := otherVersion(c.Rules, k, k.Operation); version != "" {
			return Result{Version: version}
		}
	}
	other := otherVersion(c.Rules, k, "")
	switch {
	case names(c.Rules, k, ""), c.Equivalent && other != "":
		return Result{criterion: byOperation}
	case other != "":
		return Result{criterion: byVersion, Version: other}
	case namesResource(c.Rules, k):
		return Result{criterion: byVersion}
	}
	return Result{criterion: byResource}
}

// selectsNamespace reports whether the Namespace of an object is selected, or a
// Namespace by its own labels. What is in no namespace always is.
func (c *Constraints) selectsNamespace(k *Candidate) (bool, error) {
	if c.Namespaces == nil || (k.Namespace == "" && !k.isNamespace()) {
		return true, nil
	}
	labels, err := k.labelsOfNamespace(c.Namespaces.Keys())
	return err == nil && c.Namespaces.Matches(labels), err
}

func (k *Candidate) isNamespace() bool {
	return k.Resource.Group == "" && k.Resource.Resource == "namespaces"
}

// labelsOfNamespace returns the labels that a namespaceSelector selects by.
func (k *Candidate) labelsOfNamespace(keys []string) (map[string]string, error) {
	if k.isNamespace() {
		return k.Object.GetLabels(), nil
	}
	return k.NamespaceLabels(keys)
}

// names reports whether a rule names the candidate, with an operation; empty for any.
func names(rules []Rule, k *Candidate, operation engine.Operation) bool {
	for i := range rules {
		if listed(rules[i].Versions, k.Resource.Version) && rules[i].names(k, operation) {
			return true
		}
	}
	return false
}

// otherVersion returns the first served version in which a rule names the candidate,
// other than its own.
func otherVersion(rules []Rule, k *Candidate, operation engine.Operation) string {
	for i := range rules {
		for _, version := range rules[i].Versions {
			if version != k.Resource.Version && version != "*" && rules[i].names(k, operation) && k.Served(version) {
				return version
			}
		}
	}
	return ""
}

// namesResource reports whether a rule names the candidate, in whatever version and
// with whatever operation.
func namesResource(rules []Rule, k *Candidate) bool {
	return slices.ContainsFunc(rules, func(r Rule) bool { return r.names(k, "") })
}

// names reports, as an API server does, whether the rule names the candidate; the
// version is left to the caller
// (k8s.io/apiserver/pkg/admission/plugin/webhook/predicates/rules).
func (r *Rule) names(k *Candidate, operation engine.Operation) bool {
	return listed(r.Groups, k.Resource.Group) && (operation == "" || listed(r.Operations, string(operation))) &&
		r.namesResource(k) && r.inScope(k) && r.namesObject(k)
}

func (r *Rule) namesResource(k *Candidate) bool {
	for _, x := range r.Resources {
		if (x.Name == "*" || x.Name == k.Resource.Resource) && (x.Subresource == "*" || x.Subresource == k.Subresource) {
			return true
		}
	}
	return false
}

func (r *Rule) inScope(k *Candidate) bool {
	namespaced := k.Namespace != "" && !k.isNamespace()
	switch r.Scope {
	case namespacedScope:
		return namespaced
	case clusterScope:
		return !namespaced
	}
	return true
}

func (r *Rule) namesObject(k *Candidate) bool {
	if k.Name == "" && k.GenerateName != "" && len(r.Names) > 0 {
		return slices.ContainsFunc(r.Names, func(name string) bool { return strings.HasPrefix(k.GenerateName, name) })
	}
	return len(r.Names) == 0 || slices.Contains(r.Names, k.Name)
}

func listed(items []string, text string) bool {
	for _, item := range items {
		if item == "*" || item == text {
			return true
		}
	}
	return false
}

// Explain says why a result of Match, for the same candidate, does not apply. That the
// rules name other resources says more than whatever else is not met.
func (c *Constraints) Explain(r Result, k *Candidate) engine.Mismatch {
	text := func(by criterion, wanted, found string) engine.Mismatch {
		return engine.Mismatch{Criterion: string(by), Wanted: wanted, Found: found}
	}
	by := r.criterion
	switch by {
	case byNamespaceSelector, byObjectSelector, byExclusion, byOperation, byVersion, byResource:
		if len(c.Rules) > 0 && !namesResource(c.Rules, k) {
			by = byResource
		}
	}
	switch by {
	case byNamespaceSelector:
		labels, _ := k.labelsOfNamespace(c.Namespaces.Keys()) // there, or the error would have been the answer
		return text(by, c.Namespaces.String(), "the Namespace "+engine.FoundLabels(labels, c.Namespaces))
	case byObjectSelector:
		return text(by, c.Objects.String(), engine.FoundLabels(k.Object.GetLabels(), c.Objects))
	case byOperation:
		return text(by, c.operationTexts(), "is "+string(k.Operation))
	case byVersion, byResource:
		return text(by, ruleTexts(c.Rules), "is "+k.String())
	case byExclusion:
		return text(by, "none of "+ruleTexts(c.Excluded), "is "+k.String())
	}
	return text(by, "", "")
}

// String is like `pods/status of v1 named "web"`.
func (k *Candidate) String() string {
	return fmt.Sprintf("%s of %s named %q", Resource{k.Resource.Resource, k.Subresource}, k.Resource.GroupVersion(), k.Name)
}

func (c *Constraints) operationTexts() string {
	var all []string
	for i := range c.Rules {
		all = append(all, c.Rules[i].Operations...)
	}
	slices.Sort(all)
	return cmp.Or(strings.Join(slices.Compact(all), " or "), "none")
}
