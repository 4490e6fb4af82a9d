package convert

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/convert/expr"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/convert/translate"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/policydecode"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/selector"
)

// targets converts a rule that mutates existing objects. In the new policy, object is the target t and
// request.object the trigger.
func (c *converter) targets(r *rule, s *scope, f, t *policydecode.Fields) {
	if c.To == MutatingAdmissionPolicy {
		panic(refuseField("mutate.targets", "write a MutatingPolicy", "a MutatingAdmissionPolicy changes the object of the request only"))
	}
	closed(t, fmt.Sprintf("mutate.targets[%d]", r.part), "apiVersion", "kind", "name", "namespace",
		"selector", "context", "preconditions")
	parts := map[string]string{}
	for _, key := range []string{"apiVersion", "kind", "name", "namespace"} {
		parts[key] = t.At(key).Text()
	}
	if strings.Contains(parts["apiVersion"]+parts["kind"], "{{") ||
		selector.HasWildcard(parts["kind"]+parts["apiVersion"]) {
		panic(refuseField("mutate.targets[0].kind", "name the kind", "a target whose kind is computed or a wildcard"))
	}
	gvk := schema.FromAPIVersionAndKind(parts["apiVersion"], parts["kind"])
	mapping, err := c.Mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
	if err != nil {
		panic(refuseField("mutate.targets[0].kind", translate.GiveDefinition, "the kind %s is not known", gvk.Kind))
	}
	for i := range r.guards { // here object is the trigger, elsewhere the target
		r.guards[i] = r.inlined(r.guards[i])
	}
	if slices.ContainsFunc(r.guards, mentionsVariables) {
		panic(refuseField("mutate.targets", "write the variable out in the preconditions", "a condition on a variable that cannot be written out"))
	}
	resource := resourceRule{
		Groups: []string{gvk.Group}, Versions: []string{gvk.Version},
		Resources:  []string{mapping.Resource.Resource},
		Operations: []string{"CREATE", "UPDATE"}, kinds: []schema.GroupVersionKind{gvk},
	}
	namespaced := mapping.Scope.Name() == meta.RESTScopeNameNamespace
	if c.isTrigger(r, gvk, namespaced, parts) {
		r.existing = &existing{self: true}
		if t.Has("preconditions") || t.Has("selector") || t.Has("context") {
			panic(refuseField("mutate.targets[0]", "write them as preconditions of the rule", "conditions on a target that is the trigger"))
		}
		r.guards = append(r.guards, c.patches(r, s, f)...)
		return
	}
	r.variables = nil
	x := &existing{rules: []resourceRule{resource}}
	inner := c.targetScope(r, gvk)
	// The names of targets are evaluated on the trigger.
	if ns := r.policyNamespace; ns != "" {
		parts["namespace"] = ns
	}
	r.nameTargets(x, s, inner, targetName{
		gvk.GroupVersion().String(), mapping.Resource.Resource,
		parts["name"], parts["namespace"], namespaced,
	})
	if t.Has("selector") {
		x.conditions = append(x.conditions, targetLabels(inner, t.At("selector")))
	}
	r.existing = x
	r.notes = append(r.notes, "Kyverno 1.19 applies the new policy also when it is created or changed, and does not look at its matchConditions then")
	for _, entries := range []policydecode.Node{r.contexts, t.At("context")} {
		c.context(r, inner, entries)
	}
	var conditions []expr.Expr
	if t.Has("preconditions") {
		inField("mutate.targets[0].preconditions", func() { conditions = inner.conditions(t.Values["preconditions"]) })
	}
	guards := c.patches(r, inner, f)
	r.notes = append(r.notes, inner.Notes()...)
	x.conditions = slices.Concat(x.conditions, conditions, *inner.needs, guards)
}

func mentionsVariables(e expr.Expr) bool { return expr.Mentions(e, expr.Name("variables")) }

// maxInlined bounds the bytes of an expression with inlined variables.
const maxInlined = 64 << 10

// inlined inlines the variables of an expression, unless it becomes too long.
func (r *rule) inlined(e expr.Expr) expr.Expr {
	for _, v := range slices.Backward(r.variables) {
		text, value := e.String(), v.cel.String()
		if len(text)+len(value)*strings.Count(text, "variables."+v.name) > maxInlined {
			return e
		}
		e = expr.Replace(e, expr.Variable(v.name), v.cel)
	}
	return e
}

func targetLabels(s *scope, selector policydecode.Node) expr.Expr {
	labels := read("mutate.targets[0].selector",
		func() *metav1.LabelSelector { return must(policydecode.LabelSelector(selector.Value)) })
	return read("mutate.targets[0].selector", func() expr.Expr {
		condition := labelCondition(expr.Path("object.metadata"), labels)
		if strings.Contains(condition.String(), "{{") {
			return computedLabels(s, labels)
		}
		return condition
	})
}

// computedLabels is the condition of a selector whose values have variables.
func computedLabels(s *scope, labels *metav1.LabelSelector) expr.Expr {
	if len(labels.MatchExpressions) > 0 {
		panic(refuseField("", "write matchLabels", "matchExpressions beside variables"))
	}
	var all []expr.Expr
	for _, key := range sortedKeys(labels.MatchLabels) {
		want := labels.MatchLabels[key]
		if strings.Contains(key, "{{") || !strings.Contains(want, "{{") && selector.HasWildcard(want) {
			panic(refuseField("", "write them as preconditions of the target", "a computed key, or a wildcard beside variables"))
		}
		value := s.templateText(want)
		all = append(all, expr.Equal(expr.Marked(expr.Index(expr.Path("object.metadata.?labels"),
			expr.String(key))), expr.Call("optional.of", value.cel)))
	}
	return expr.And(all...)
}

// isTrigger reports whether the target is the trigger. Without a namespace, a target is every object of that
// name.
func (c *converter) isTrigger(r *rule, gvk schema.GroupVersionKind, namespaced bool,
	parts map[string]string,
) bool {
	plain := func(text string) string { return strings.Join(strings.Fields(text), "") }
	if plain(parts["name"]) != "{{request.object.metadata.name}}" && plain(parts["name"]) != "{{request.name}}" {
		return false
	}
	switch plain(parts["namespace"]) {
	case "":
		if namespaced {
			return false
		}
	case "{{request.namespace}}", "{{request.object.metadata.namespace}}":
	default:
		return false
	}
	rules := r.selection.rules
	return len(rules) == 1 && len(rules[0].kinds) == 1 && rules[0].kinds[0] == gvk &&
		!strings.Contains(rules[0].Resources[0], "/")
}

func (c *converter) targetScope(r *rule, gvk schema.GroupVersionKind) *scope {
	sure := alwaysThere([]schema.GroupVersionKind{gvk})
	o := translate.Options{
		Kinds: c.types(r.typed()), Sure: alwaysThere(r.kindsOf()), Targets: true, Target: c.typeOf(gvk),
		TargetSure: sure,
		Namespace:  orEmpty(expr.Path("request.?namespace")), Deleted: r.onlyDeleted(),
	}
	r.target = gvk
	return &scope{Scope: translate.NewScope(o), always: sure, needs: &[]expr.Expr{}}
}

var targetsName = expr.Path("object.metadata.name") //nolint:gochecknoglobals // an immutable expression

// targetName identifies targets, as in the policy.
type targetName struct {
	version, resource, name, namespace string
	namespaced                         bool
}

// nameTargets selects the targets: s is the trigger's scope, and inner the target's.
func (r *rule) nameTargets(x *existing, s, inner *scope, t targetName) {
	name, namespace, namespaced, version, resource := t.name, t.namespace, t.namespaced, t.version, t.resource
	computed := strings.Contains(name+namespace, "{{")
	one := name != "" && !selector.HasWildcard(name) && (!namespaced || namespace != "" && !selector.HasWildcard(namespace))
	if !computed && !one {
		if name != "" && name != "*" {
			x.conditions = append(x.conditions, translate.Wildcard(targetsName, name))
		}
		if namespace != "" && namespace != "*" {
			x.conditions = append(x.conditions, translate.Wildcard(expr.Path("object.metadata.namespace"), namespace))
		}
		return
	}
	in := expr.String("")
	if namespaced && namespace != "" && namespace != "*" {
		ns := read("mutate.targets[0].namespace", func() expression { return s.notEmpty(namespace) })
		// Kyverno does not check it if the policy changed
		if in = ns.cel; expr.Contains(*s.needs, expr.Not(isEmpty(in))) {
			in = expr.Cond(isEmpty(in), expr.String("-"), in)
		}
	}
	if selector.HasWildcard(namespace) && namespace != "*" {
		panic(refuseField("mutate.targets[0].namespace", "write a rule for each namespace, or a namespaceSelector", "a wildcard beside a variable"))
	}
	list := r.listCall(version, resource, in)
	x.expression = list
	switch {
	case name == "" || name == "*":
	case strings.Contains(name, "{{") && namespaced && (namespace == "" || namespace == "*"):
		n := read("mutate.targets[0].name", func() expression { return inner.templateText(name) })
		x.conditions = []expr.Expr{expr.Equal(targetsName, n.cel)}
	case !selector.HasWildcard(name):
		n := read("mutate.targets[0].name", func() expression { return s.notEmpty(name) })
		x.expression = r.readCall("resource.Get", version, resource, in, n.cel)
	default:
		x.conditions = []expr.Expr{translate.Wildcard(targetsName, name)}
	}
}
