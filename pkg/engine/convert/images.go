package convert

import (
	"fmt"
	"regexp"
	"slices"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/convert/expr"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/convert/translate"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/kyverno/jmespath"
)

// imagesName is the variable for the images of an object, both in Kyverno and in the new policy.
const imagesName = "images"

// The grammar of image references, with a registry (github.com/distribution/reference).
const (
	hasRegistry = `^([^/]*[.:A-Z][^/]*|localhost)/`
	hostPart    = `[a-zA-Z0-9]([a-zA-Z0-9-]*[a-zA-Z0-9])?`
	pathPart    = `[a-z0-9]+(([._]|__|-+)[a-z0-9]+)*`
	isImage     = `^(` + hostPart + `([.]` + hostPart + `)*|\[[a-fA-F0-9:]+\])(:[0-9]+)?(/` + pathPart + `)+` +
		`(:[0-9A-Za-z_][0-9A-Za-z_.-]{0,127})?(@sha(256:[0-9a-f]{64}|384:[0-9a-f]{96}|512:[0-9a-f]{128}))?$`
)

// imageParts are the parts of an image; the first three always exist.
//
//nolint:gochecknoglobals // an immutable table
var imageParts = []string{"registry", "path", "name", "tag", "digest"}

// imagePart is the expression of a part of an image, given the registry and the rest.
func imagePart(name string) expr.Expr {
	image := expr.Name("i")
	split := func(of expr.Expr, at string) expr.Expr { return expr.Method(of, "split", expr.String(at)) }
	byDigest := split(expr.Field(image, "rest"), "@")
	byTag := split(expr.Index(byDigest, expr.Int(0)), ":")
	path := expr.Index(byTag, expr.Int(0))
	switch name {
	case "registry":
		return expr.Field(image, "registry")
	case "path":
		return path
	case "name":
		return expr.Method(path, "find", expr.String("[^/]+$"))
	case "digest":
		return expr.OptionalIndex(byDigest, expr.Int(1))
	}
	latest := only(expr.Not(expr.Method(expr.Field(image, "rest"), "contains", expr.String("@"))),
		expr.String("latest"))
	return expr.Method(expr.OptionalIndex(byTag, expr.Int(1)), "or", latest)
}

// imageQuery matches a part of an image, by the list and the name of its container.
var imageQuery = regexp.MustCompile(`\bimages\.(containers|initContainers|ephemeralContainers)\.(?:\*|"[^"]*"|\{\{[^{}]*\}\}|[A-Za-z0-9_]+)\.([A-Za-z]+)`)

// images defines Kyverno's variable images, if a rule mentions it, as a policy variable with the mentioned
// lists and parts.
func (c *converter) images(r *rule, s *scope, fields map[string]any) {
	lists, parts := map[string]bool{}, map[string]bool{}
	for _, m := range imageQuery.FindAllStringSubmatch(fmt.Sprint(fields), -1) {
		lists[m[1]], parts[m[2]] = true, true
	}
	spec := r.podSpec()
	switch {
	case len(lists) == 0:
		s.Refuse(imagesName, "it is more than a part of the images of some containers", "name the list, the container and the part: images.containers.web.tag, or images.containers.*.tag for all")
		return
	case spec == nil:
		s.Refuse(imagesName, "the kinds of the rule have their containers in several places, or none", "write a rule for each of the kinds")
		return
	}
	image := map[string]translate.Type{}
	var written []expr.Entry
	var always []string
	for i, name := range imageParts {
		if parts[name] {
			if i < 3 {
				always = append(always, name)
			}
			written = append(written, expr.Entry{Key: expr.String(name), Value: imagePart(name), Optional: i >= 3})
			image[name] = translate.Text
		}
		delete(parts, name)
	}
	for _, part := range sortedKeys(parts) { // such as reference, which is composed of the others
		s.Refuse(imagesName, "its part "+part+" has no equal", "make it of registry, path, name, tag and digest")
		return
	}
	all := map[string]translate.Type{}
	var entries []expr.Entry
	for _, list := range sortedKeys(lists) {
		at := c.root(r)
		for _, field := range append(spec, list) {
			at = at.field(field, s.sure(at, field))
		}
		entries = append(entries, expr.Entry{Key: expr.String(list), Value: at.elements()})
		all[list] = translate.MapOf(translate.StructOf(image, always...))
	}
	found := func(in expr.Expr) expr.Expr { return expr.Call("optional.ofNonZeroValue", imagesOf(in, written)) }
	value := expr.Object("", expr.Entry{Key: entries[0].Key, Value: found(entries[0].Value), Optional: true})
	if list := expr.Name("l"); len(entries) > 1 { // one expression for all lists
		each := expr.Object("", expr.Entry{Key: list, Value: found(expr.Name("all")), Optional: true})
		value = expr.Method(expr.Object("", entries...), "transformMapEntry", list, expr.Name("all"), each)
	}
	r.inside = r.inside || c.To == MutatingAdmissionPolicy // its conditions see no variables
	variable := r.define(imagesName, value)
	s.Define(imagesName, translate.Expression(expr.Variable(variable), translate.StructOf(all)))
}

// podSpec is the path of the Pod specification in all objects of a rule; nil if it differs.
func (r *rule) podSpec() []string {
	var out []string
	for _, resource := range r.rules {
		for _, k := range resource.kinds {
			path := jmespath.PodSpecPath(k.GroupKind())
			if path == nil || out != nil && !slices.Equal(out, path) {
				return nil
			}
			out = path
		}
	}
	return out
}

// imagesOf maps container names to the parts of their images.
func imagesOf(containers expr.Expr, parts []expr.Entry) expr.Expr {
	entry := func(name string,
		value expr.Expr,
	) expr.Entry {
		return expr.Entry{Key: expr.String(name), Value: value}
	}
	written := orEmpty(expr.Path("c.?image"))
	registry := expr.Cond(expr.Method(written, "matches", expr.String(hasRegistry)), expr.String(""), expr.String("docker.io/"))
	of := expr.Macro(containers, "map", "c", expr.Object("",
		entry("name", expr.Call("string", expr.Path("c.name"))), entry("image", expr.Sum(registry, written))))
	image := expr.Path("i.image")
	of = expr.Macro(of, "filter", "i", expr.Method(image, "matches", expr.String(isImage)))
	rest := expr.Method(image, "substring",
		expr.Binary("+", expr.Method(image, "indexOf", expr.String("/")), expr.Int(1)))
	of = expr.Macro(of, "map", "i", expr.Object("",
		entry("name", expr.Path("i.name")), entry("registry",
			expr.Index(expr.Method(image, "split", expr.String("/")), expr.Int(0))), entry("rest", rest)))
	return expr.Method(of, "transformMapEntry", expr.Name("n"), expr.Name("i"),
		expr.Object("", expr.Entry{Key: expr.Path("i.name"), Value: expr.Object("", parts...)}))
}
