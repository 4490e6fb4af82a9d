package convert

import (
	"cmp"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"

	gojmespath "github.com/kyverno/go-jmespath"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/convert/expr"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/convert/translate"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/kyverno/jmespath"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/kyverno/variables"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/policydecode"
)

// context defines the entries of a context. Policy variables that they need go to the rule.
func (c *converter) context(r *rule, s *scope, entries policydecode.Node) {
	for _, n := range entries.List() {
		f := n.Fields()
		name := f.At("name").Text()
		s.Define(name, read("context."+name, func() translate.Value { return c.contextEntry(r, s, name, f) }))
	}
}

func (c *converter) contextEntry(r *rule, s *scope, name string, f *policydecode.Fields) translate.Value {
	closed(f, "", "name", "variable", "configMap", "apiCall", "globalReference", "imageRegistry")
	one(f, "", "variable", "configMap", "apiCall", "globalReference", "imageRegistry")
	switch {
	case f.Has("variable"):
		return c.variable(s, f.At("variable").Fields())
	case f.Has("configMap"):
		return c.configMap(r, s, name, f.At("configMap").Fields())
	case f.Has("apiCall"):
		return c.apiCall(r, s, name, f.At("apiCall").Fields())
	case f.Has("globalReference"):
		panic(refuseField("", "use globalContext.Get of a MutatingPolicy, which fails where the entry is not there", "a globalReference"))
	case f.Has("imageRegistry"):
		return c.imageData(r, s, name, f.At("imageRegistry").Fields())
	}
	panic(refuseField("", "", "an entry of an unknown sort"))
}

// imageData looks up an image. Kyverno's CEL function names some results differently, and formats the image
// with its digest differently.
func (c *converter) imageData(r *rule, s *scope, name string, f *policydecode.Fields) translate.Value {
	if c.To == MutatingAdmissionPolicy {
		panic(refuseField("", "write a MutatingPolicy", "a MutatingAdmissionPolicy cannot look images up"))
	}
	closed(f, "imageRegistry", "reference", "jmesPath")
	reference := s.templateText(f.At("reference").Text())
	r.notes = append(r.notes, "the images were looked up in a registry that is made up, unless --allow-registry is given; where a lookup fails, the old rule changes nothing, and the new policy denies the request")
	found := r.variable(s, name, expr.Call("image.GetMetadata", reference.cel))
	text := func(field string) expr.Expr { return expr.Typed(expr.Field(found, field), expr.Text) }
	part := func(field string) translate.Value {
		return translate.Optional(expr.OptionalField(found, field), expr.Field(found, field), translate.Any, false)
	}
	digested := expr.Sum(expr.Path("found.registry"), expr.String("/"), expr.Path("found.repository"),
		expr.String("@"), expr.Path("found.digest"))
	resolved := expr.Call("cel.bind", expr.Name("found"), found, digested)
	fields := map[string]translate.Value{
		"resolvedImage": translate.Expression(expr.Typed(resolved, expr.Text), translate.Text),
		"manifest":      part("manifest"), "manifestList": part("imageIndex"), "configData": part("config"),
	}
	for _, field := range []string{"image", "registry", "repository", "identifier"} {
		fields[field] = translate.Expression(text(field), translate.Text)
	}
	v := translate.Expression(found, translate.StructOf(nil)).WithFields(fields)
	if query := f.At("jmesPath").Text(); query != "" {
		inField("jmesPath", func() { v = search(s, v, query) })
	}
	return v.NeverNull()
}

func (c *converter) variable(s *scope, f *policydecode.Fields) translate.Value {
	closed(f, "variable", "value", "jmesPath", "default")
	query := f.At("jmesPath").Text()
	fallback := f.Values["default"]
	var v translate.Value
	switch {
	case f.Has("value"):
		v = s.Value(f.Values["value"])
		if query != "" {
			v = search(s, v, query)
		}
	case query != "":
		v = s.query(query)
	default:
		return s.Value(fallback)
	}
	if fallback == nil {
		return v.NeverNull()
	}
	other := s.Value(fallback)
	if v.Has() == nil && v.Guard() == nil {
		return v
	}
	return v.Default(other)
}

func search(s *scope, v translate.Value, query string) translate.Value {
	const name = "response_"
	inner := s.Child()
	inner.Define(name, v)
	return (&scope{Scope: inner}).query(name + " | " + query)
}

// query is the value of an expression that may contain variables.
func (s *scope) query(text string) translate.Value {
	if strings.Contains(text, "{{") {
		return s.Text("{{ " + text + " }}")
	}
	return s.Query(text)
}

// configMap finds a ConfigMap in a list: reading a missing one would deny the request.
func (c *converter) configMap(r *rule, s *scope, name string, f *policydecode.Fields) translate.Value {
	closed(f, "configMap", "name", "namespace")
	if c.To == MutatingAdmissionPolicy {
		return r.boundConfigMap(f)
	}
	object := s.templateText(f.At("name").Text())
	namespace := s.templateText(r.configMapNamespace(f))
	if isComputed(r.configMapNamespace(f)) && !neverEmpty.MatchString(namespace.cel.String()) {
		namespace.cel = expr.Cond(isEmpty(namespace.cel), expr.String(cmp.Or(r.policyNamespace, "default")),
			namespace.cel)
	}
	found := itemsNamed(r.listCall("v1", "configmaps", namespace.cel), "m", object.cel)
	return firstOf(r.variable(s, name, found), configMapType).Required()
}

// itemsNamed filters a list by name; variable holds each item.
func itemsNamed(list expr.Expr, variable string, name expr.Expr) expr.Expr {
	return expr.Macro(expr.Call("dyn", expr.Field(list, "items")), "filter", variable, expr.Equal(expr.Path(variable+".metadata.name"), name))
}

// listCall lists a resource in a namespace.
func (r *rule) listCall(version, resource string, namespace expr.Expr) expr.Expr {
	return r.readCall("resource.List", version, resource, namespace)
}

// readCall calls a function that reads from a namespace: for a NamespacedMutatingPolicy, its own.
func (r *rule) readCall(function, version, resource string, namespace expr.Expr,
	name ...expr.Expr,
) expr.Expr {
	args := []expr.Expr{expr.String(version), expr.String(resource)}
	switch {
	case r.policyNamespace == "":
		return expr.Call(function, slices.Concat(args, []expr.Expr{namespace}, name)...)
	case expr.Same(namespace, expr.String(r.policyNamespace)) ||
		expr.Same(namespace, expr.Path("request.namespace")):
		return expr.Call(function, append(args, name...)...)
	}
	panic(refuseField("", "write a ClusterPolicy that matches namespace "+r.policyNamespace, "a NamespacedMutatingPolicy reads in its own namespace alone"))
}

// isComputed reports whether a string consists only of variables, so that it may be empty.
func isComputed(template string) bool {
	segments, err := variables.Split(template)
	return err == nil && !slices.ContainsFunc(segments,
		func(s variables.Segment) bool { return s.Variable == nil && s.Text != "" }) && template != ""
}

// notEmpty is the expression of a name or a namespace. If it is empty the rule changes nothing: it would
// select everything.
func (s *scope) notEmpty(template string) expression {
	x := s.templateText(template)
	if isComputed(template) && !neverEmpty.MatchString(x.cel.String()) {
		s.need(expr.Not(isEmpty(x.cel)))
	}
	return x
}

// neverEmpty matches expressions of names that are not empty if present. A request namespace that may be
// empty is written differently.
var neverEmpty = regexp.MustCompile(`^request\.namespace$|^(string\()?(request\.)?(object|oldObject)\.metadata\.(name|namespace)\)?$`)

func isEmpty(text expr.Expr) expr.Expr { return expr.Equal(text, expr.String("")) }

// configMapNamespace is the namespace of a ConfigMap, as written in the policy.
func (r *rule) configMapNamespace(f *policydecode.Fields) string {
	return cmp.Or(f.At("namespace").Text(), r.policyNamespace, "default")
}

// boundConfigMap is the ConfigMap as the parameter of a policy, which does not apply without it.
func (r *rule) boundConfigMap(f *policydecode.Fields) translate.Value {
	const instead = "write a MutatingPolicy"
	param := types.NamespacedName{Namespace: r.configMapNamespace(f), Name: f.At("name").Text()}
	switch {
	case len(validation.IsDNS1123Subdomain(param.Name)) > 0 ||
		len(validation.IsDNS1123Label(param.Namespace)) > 0:
		panic(refuseField("", instead, "the binding of a MutatingAdmissionPolicy names a ConfigMap without variables"))
	case r.policyNamespace != "" && param.Namespace != r.policyNamespace:
		panic(refuseField("", "", "a Policy in namespace %s cannot read from namespace %s", r.policyNamespace, param.Namespace))
	case r.param != types.NamespacedName{} && r.param != param:
		panic(refuseField("", instead, "a MutatingAdmissionPolicy has one parameter, and the rule reads two ConfigMaps"))
	}
	r.param = param
	object := expr.Name(paramVariable)
	data, metadata := expr.OptionalField(object, "data"), expr.Field(object, "metadata")
	whole := expr.Map(expr.Entry{Key: expr.String("data"), Value: data, Optional: true}, expr.Entry{Key: expr.String("metadata"), Value: metadata})
	return translate.Expression(whole, translate.StructOf(nil)).WithFields(map[string]translate.Value{
		"data":     translate.Optional(data, expr.Field(object, "data"), translate.Texts, true),
		"metadata": translate.Expression(metadata, translate.Metadata),
	})
}

// checkParam refuses a rule that may act without the ConfigMap that it names: Kyverno reads it on demand.
func (r *rule) checkParam(f *policydecode.Fields) {
	if r.param == (types.NamespacedName{}) {
		return
	}
	entries, mutate := f.At("context").List(), f.At("mutate").Fields()
	loops := mutate.At("foreach").List()
	always := func(n policydecode.Node) bool {
		return reads(n.Fields(), slices.Concat(entries, n.Fields().At("context").List()))
	}
	if reads(f, entries) || reads(mutate, entries) ||
		len(loops) > 0 && !slices.ContainsFunc(loops, func(n policydecode.Node) bool { return !always(n) }) {
		return
	}
	panic(refuseField("context", "write a MutatingPolicy",
		"something may be done without ConfigMap %s, without which a MutatingAdmissionPolicy is not applied", r.param))
}

const paramVariable = "params"

// reads reports whether a rule or a loop always needs a ConfigMap of its context, whatever the object.
func reads(f *policydecode.Fields, context []policydecode.Node) bool {
	names := map[string]bool{}
	for _, n := range context {
		entry := n.Fields()
		v := entry.At("variable").Fields()
		derived := !v.Has("default") &&
			(needs("{{"+v.At("jmesPath").Text()+"}}", names) || needs(v.Values["value"], names))
		names[entry.At("name").Text()] = entry.Has("configMap") || derived
	}
	values := []any{"{{" + f.At("list").Text() +
		"}}", f.Values["patchStrategicMerge"], f.Values["patchesJson6902"]}
	conditions := f.At("preconditions")
	if _, isList := conditions.Value.([]any); !isList {
		conditions = conditions.Fields().At("all")
	}
	for _, n := range conditions.List() {
		values = append(values, n.Fields().Values["key"], n.Fields().Values["value"])
	}
	return slices.ContainsFunc(values, func(value any) bool { return needs(value, names) })
}

// needs reports whether a value cannot be evaluated without an entry: a variable begins with its name, even
// if a default follows.
func needs(value any, names map[string]bool) bool {
	return anyText(value, func(text string) bool {
		expressions, _ := variables.Inspect(text)
		return slices.ContainsFunc(expressions, func(x *jmespath.Expression) bool {
			ast, err := jmespath.Parse(x.String())
			for err == nil && slices.Contains([]gojmespath.ASTNodeType{
				gojmespath.ASTSubexpression,
				gojmespath.ASTIndexExpression, gojmespath.ASTOrExpression,
			}, ast.NodeType) {
				ast = ast.Children[0]
			}
			name, _ := ast.Value.(string)
			return ast.NodeType == gojmespath.ASTField && names[name]
		})
	})
}

// configMapType is the part of a ConfigMap that Kyverno reads; its values are always strings.
var configMapType = translate.StructOf(map[string]translate.Type{ //nolint:gochecknoglobals // immutable
	"data": translate.Texts, "metadata": translate.Metadata,
}, "metadata")

func firstOf(list expr.Expr, of translate.Type) translate.Value {
	return translate.Optional(expr.OptionalIndex(list, expr.Int(0)), expr.Index(list, expr.Int(0)), of, true)
}

func (r *rule) define(name string, value expr.Expr) string {
	if !identifier.MatchString(name) {
		name = strings.Join(words.FindAllString(name, -1), "_")
	}
	wanted := name
	for i := 2; slices.ContainsFunc(slices.Concat(r.beside, r.variables),
		func(v named) bool { return v.name == name && !expr.Same(v.cel, value) }); i++ {
		name = fmt.Sprint(wanted, i)
	}
	r.variables = addNamed(r.variables, named{name, value})
	return name
}

// variable makes a value a policy variable. A value that depends on a loop element stays in place.
func (r *rule) variable(s *scope, name string, value expr.Expr) expr.Expr {
	for _, l := range s.loops {
		if expr.Mentions(value, expr.Name(l.variable)) || expr.Mentions(value, expr.Name(l.index)) {
			return value
		}
	}
	return expr.Variable(r.define(name, value))
}

func (c *converter) apiCall(r *rule, s *scope, name string, f *policydecode.Fields) translate.Value {
	switch {
	case f.Has("service"):
		panic(refuseField("service", "use http.Get or http.Post of a MutatingPolicy, which deny the request where the service fails", "a call of a service"))
	case f.At("method").Text() == "POST":
		panic(refuseField("method", "use resource.Post of a MutatingPolicy", "a POST"))
	case strings.Contains(f.At("urlPath").Text(), "?"):
		panic(refuseField("urlPath", "filter the list in the expression", "a query in the path"))
	}
	closed(f, "apiCall", "urlPath", "method", "jmesPath", "default")
	v := c.answer(r, s, name, f.At("urlPath").Text())
	if query := f.At("jmesPath").Text(); query != "" {
		inField("jmesPath", func() { v = search(s, v, query) })
	}
	if f.Has("default") {
		return v.Default(s.Value(f.Values["default"]))
	}
	return v.NeverNull()
}

// noObjects refuses a path without objects.
func noObjects(path string) *Refusal {
	return refuseField("urlPath", "read objects with resource.Get or resource.List of a MutatingPolicy", "the path %s is none of objects", path)
}

// answer is the API server's answer for a path.
func (c *converter) answer(r *rule, s *scope, name, path string) translate.Value {
	parts := strings.Split(strings.Trim(path, "/"), "/")
	for i := range parts {
		if decoded, err := url.PathUnescape(parts[i]); err == nil && !strings.Contains(parts[i], "{{") {
			parts[i] = decoded
		}
		parts[i] = strings.TrimSpace(parts[i])
	}
	version := ""
	switch {
	case len(parts) > 2 && parts[0] == "api":
		version, parts = parts[1], parts[2:]
	case len(parts) > 3 && parts[0] == "apis":
		version, parts = parts[1]+"/"+parts[2], parts[3:]
	default:
		panic(noObjects(path))
	}
	namespace := expression{cel: expr.String("")}
	if parts[0] == "namespaces" && len(parts) == 2 && strings.Join(strings.Fields(parts[1]), "") == "{{request.namespace}}" {
		if c.To == MutatingAdmissionPolicy {
			r.inside = true
		}
		return translate.Expression(expr.Name("namespaceObject"), c.objectOf(schema.GroupVersionKind{Version: "v1", Kind: "Namespace"}))
	}
	if c.To == MutatingAdmissionPolicy {
		panic(refuseField("", "write a MutatingPolicy", "a MutatingAdmissionPolicy cannot call the API server"))
	}
	if parts[0] == "namespaces" && len(parts) > 2 {
		namespace = s.notEmpty(parts[1])
		parts = parts[2:]
	}
	if len(parts) > 2 {
		panic(noObjects(path))
	}
	resource := parts[0]
	if strings.Contains(version+resource, "{{") {
		panic(refuseField("urlPath", "name the resource", "a resource that is computed"))
	}
	list, kind := r.listCall(version, resource, namespace.cel), translate.Any
	if gv, err := schema.ParseGroupVersion(version); err == nil {
		if gvk, err := c.Mapper.KindFor(gv.WithResource(resource)); err == nil {
			kind = c.objectOf(gvk)
		}
	}
	if len(parts) == 1 {
		found := translate.StructOf(map[string]translate.Type{"items": translate.ListOf(kind)}, "items")
		return translate.Expression(r.variable(s, name, expr.Call("dyn", list)), found)
	}
	return firstOf(r.variable(s, name, itemsNamed(list, "o", s.notEmpty(parts[1]).cel)), kind).Required()
}

// objectOf is the type of stored objects of a kind.
func (c *converter) objectOf(gvk schema.GroupVersionKind) translate.Type {
	return translate.ObjectType(c.types([]schema.GroupVersionKind{gvk}))
}
