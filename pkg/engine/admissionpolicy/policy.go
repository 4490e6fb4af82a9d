package admissionpolicy

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/cel"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/diff"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/policydecode"
)

type policy struct {
	policydecode.Node // of the document
	cel.Policy
	broken        bool                     // it does not compile
	params        *schema.GroupVersionKind // paramKind; may be nil
	asksParams    bool                     // an expression uses params
	asksNamespace bool                     // an expression uses namespaceObject
}

// maxConditions is an API server's limit on match conditions.
const maxConditions = 64

type expressions struct{ variables, conditions, mutations []cel.Source }

// decodePolicy reads a policy. Errors go to the report.
func decodePolicy(r *policydecode.Report, d engine.Document) (*policy, expressions) {
	p := &policy{Node: policydecode.Node{Report: r}}
	p.Ref = engine.RuleRef{
		Dialect: Name, Policy: d.Key.Name, Origin: d.Origin, Severity: engine.SeverityOf(d.Object()),
	}
	root := policydecode.Node{Report: r, Value: d.Object().Object}.Fields()
	checkVersion(root.At("apiVersion"), d)
	if d.Key.Name == "" {
		root.At("metadata").Fields().At("name").Fail("is missing")
	}
	spec := root.At("spec").Fields()
	p.params = decodeParamKind(spec.At("paramKind"))
	p.Constraints = decodeConstraints(spec.At("matchConstraints"))
	if len(p.Constraints.Rules) == 0 {
		spec.At("matchConstraints").Fail("has no resourceRules: nothing says what the policy is for")
	}
	p.FailuresIgnored = spec.At("failurePolicy").OneOf("Fail", "Ignore") == "Ignore"
	p.Reinvoked = spec.At("reinvocationPolicy").OneOf("Never", "IfNeeded") == "IfNeeded"
	if !spec.Has("reinvocationPolicy") {
		spec.At("reinvocationPolicy").Lint("an API server refuses a policy without it; Never is assumed")
	}
	twice := func(name policydecode.Node, x cel.Source) { name.Fail("there is another one called %s", x.Name) }
	x := expressions{variables: cel.DecodeNamed(spec.At("variables"), twice), conditions: cel.DecodeNamed(spec.At("matchConditions"), twice)}
	if len(x.conditions) > maxConditions {
		spec.At("matchConditions").Lint("an API server takes no more than %d", maxConditions)
	}
	x.mutations = cel.DecodePatches(spec.At("mutations"), func(field policydecode.Node, patchType string) {
		field.Lint("an API server refuses it where patchType is %s; it has no effect", patchType)
	})
	spec.Elsewhere("below matchConstraints", "resourceRules", "excludeResourceRules",
		"namespaceSelector", "objectSelector")
	spec.Done()
	root.DoneObject()
	return p, x
}

// identifier matches valid CEL variable names.
var identifier = regexp.MustCompile(`^[_a-zA-Z][_a-zA-Z0-9]*$`)

// compile compiles the expressions; an error goes to the report and leaves the policy broken.
func (p *policy) compile(x expressions, in *cel.Environment) {
	p.Scope = in.NewScope(func(n policydecode.Node, err error) { n.Fail("%w", err) })
	for _, v := range x.variables {
		if !identifier.MatchString(v.Name) {
			v.Fail("the name of the variable, %q, is no CEL identifier", v.Name)
			continue
		}
		p.Scope.Variables([]cel.Source{v})
	}
	p.Conditions, p.Mutations = p.Scope.Conditions(x.conditions), p.Scope.Mutations(x.mutations)
	if p.broken = len(p.Report.Errs) > 0; p.broken {
		return
	}
	for _, c := range p.Conditions {
		if c.Uses("variables") {
			c.Lint("an API server refuses variables in match conditions")
		}
	}
	p.Scope.Lint()
	p.lint()
}

// lint warns of rejections by a server, and of limits of a preview.
func (p *policy) lint() {
	p.asksParams = p.params != nil && p.Scope.Uses("params")
	p.asksNamespace = p.Scope.Uses("namespaceObject")
	if p.AsksUser() {
		p.Node.Finding(engine.AsksUser, engine.RequestUserLint)
	}
	for i := range p.Constraints.Rules {
		if slices.Contains(p.Constraints.Rules[i].Operations, "DELETE") {
			p.Node.Lint("an API server refuses DELETE in a resource rule: it mutates what is created or updated")
		}
	}
	if p.Constraints.OnlySubresources() {
		p.Node.Lint("its resource rules name only subresources: it is not evaluated on objects themselves")
	}
}

// decodeConstraints reads matchConstraints or matchResources, with an API server's defaults.
func decodeConstraints(n policydecode.Node) *cel.Constraints {
	f := n.Fields()
	c := cel.DecodeConstraints(f, func(list policydecode.Node) {
		list.Lint("an API server refuses a rule without it, and it selects nothing")
	})
	c.Equivalent = f.At("matchPolicy").OneOf("Equivalent", "Exact") == "Equivalent"
	f.Done()
	return c
}

func checkVersion(n policydecode.Node, d engine.Document) {
	if !slices.Contains([]string{"v1", "v1beta1", "v1alpha1"}, d.Key.GroupVersionKind().Version) {
		n.Fail("%s is no version of %s: use v1, v1beta1 or v1alpha1", d.Object().GetAPIVersion(), d.Key.Kind)
	}
}

func decodeParamKind(n policydecode.Node) *schema.GroupVersionKind {
	if n.Value == nil {
		return nil
	}
	f := n.Fields()
	gv, err := schema.ParseGroupVersion(f.At("apiVersion").Text())
	if err != nil || gv.Version == "" {
		f.At("apiVersion").Fail("must be a group and a version, such as v1 or apps/v1")
	}
	kind := f.At("kind").Required()
	f.At("kind").LintKind(engine.KindName{
		Groups: []string{gv.Group}, Versions: []string{gv.Version}, Kind: kind,
	})
	f.Done()
	gvk := gv.WithKind(kind)
	return &gvk
}

// errUndecodable is an API server's error for a JSON patch whose result it cannot decode. It then refuses the
// object, whatever the failurePolicy (dispatch in pkg/admission/plugin/policy/mutating of k8s.io/apiserver).
var errUndecodable = errors.New("strict decoding error")

// decodable checks the result of a JSON patch like an API server, which decodes built-in kinds strictly: an
// unknown field is an error. Fields from before the patch do not count. A kind without a schema is not
// checked.
func (r *run) decodable(ctx context.Context, before, after map[string]any) error {
	kind := r.target.Object.GroupVersionKind()
	if !diff.BuiltIn(kind.Group) {
		return nil
	}
	s, err := r.world.Schema(ctx, kind)
	if err != nil || s.Fields == nil {
		return nil // a rule that needs no schema continues
	}
	added := unknownFields(s.Fields, after)
	if len(added) > 0 {
		known := unknownFields(s.Fields, before)
		added = slices.DeleteFunc(added, func(path string) bool { return slices.Contains(known, path) })
	}
	if len(added) == 0 {
		return nil
	}
	return fmt.Errorf("%w: %s", errUndecodable, strings.Join(added, ", "))
}

func unknownFields(v engine.FieldValidator, object map[string]any) []string {
	var out []string
	for _, f := range v.Validate(nil, object) {
		if f.Unknown {
			out = append(out, fmt.Sprintf("unknown field %q", engine.PathString(f.Path)))
		}
	}
	return out
}
