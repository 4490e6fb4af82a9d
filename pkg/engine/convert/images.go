package convert

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/convert/expr"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/convert/translate"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/kyverno/jmespath"
)

// imagesName is Kyverno's variable for the images of an object, and that of the new policy.
const imagesName = "images"

// The grammar of image references, with a registry (github.com/distribution/reference).
const (
	hasRegistry = `^([^/]*[.:A-Z][^/]*|localhost)/`
	hostPart    = `[a-zA-Z0-9]([a-zA-Z0-9-]*[a-zA-Z0-9])?`
	pathPart    = `[a-z0-9]+(([._]|__|-+)[a-z0-9]+)*`
	isImage     = `^(` + hostPart + `([.]` + hostPart + `)*|\[[a-fA-F0-9:]+\])(:[0-9]+)?(/` + pathPart + `)+` +
		`(:[0-9A-Za-z_][0-9A-Za-z_.-]{0,127})?(@sha(256:[0-9a-f]{64}|384:[0-9a-f]{96}|512:[0-9a-f]{128}))?$`
)

// imageParts are the expressions of the parts of an image, of which the first three are always there.
//
//nolint:gochecknoglobals // an immutable table
var imageParts = []struct{ name, cel string }{
	{"registry", `"registry": i.registry`},
	{"path", `"path": i.rest.split("@")[0].split(":")[0]`},
	{"name", `"name": i.rest.split("@")[0].split(":")[0].find("[^/]+$")`},
	{"tag", `?"tag": i.rest.split("@")[0].split(":")[?1].or(i.rest.contains("@") ? optional.none() : optional.of("latest"))`},
	{"digest", `?"digest": i.rest.split("@")[?1]`},
}

// imageQuery is a part of an image, by the list and the name of its container.
var imageQuery = regexp.MustCompile(`\bimages\.(containers|initContainers|ephemeralContainers)\.(?:\*|"[^"]*"|\{\{[^{}]*\}\}|[A-Za-z0-9_]+)\.([A-Za-z]+)`)

// images defines Kyverno's variable images, where a rule mentions it, as a variable of the policy that has the lists and
// the parts that the rule mentions.
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
	var written, always []string
	for i, p := range imageParts {
		if parts[p.name] {
			if i < 3 {
				always = append(always, p.name)
			}
			written = append(written, p.cel)
			image[p.name] = translate.Text
		}
		delete(parts, p.name)
	}
	for _, part := range sortedKeys(parts) { // such as reference, which is made of the others
		s.Refuse(imagesName, "its part "+part+" has no equal", "make it of registry, path, name, tag and digest")
		return
	}
	all := map[string]translate.Type{}
	var entries []string
	for _, list := range sortedKeys(lists) {
		at := c.root(r)
		for _, field := range append(spec, list) {
			at = at.field(field, s.sure(at, field))
		}
		entries = append(entries, "?"+quote(list)+": optional.ofNonZeroValue("+imagesOf(at.or("[]"), written)+")")
		all[list] = translate.MapOf(translate.StructOf(image, always...))
	}
	r.inside = r.inside || c.To == MutatingAdmissionPolicy // whose conditions see no variables
	variable := r.define(imagesName, "{"+strings.Join(entries, ", ")+"}")
	s.Define(imagesName, translate.Expression(expr.Name("variables."+variable), translate.StructOf(all)))
}

// podSpec is where all objects of a rule have the specification of their Pods; nil if it is not one place.
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

// imagesOf is a map of the parts of the images of containers, by their names.
func imagesOf(containers string, parts []string) string {
	return containers +
		fmt.Sprintf(`.map(c, {"name": string(c.name), "image": (c.?image.orValue("").matches(%s) ? "" : "docker.io/") + c.?image.orValue("")})`, quote(hasRegistry)) +
		fmt.Sprintf(`.filter(i, i.image.matches(%s))`, quote(isImage)) +
		`.map(i, {"name": i.name, "registry": i.image.split("/")[0], "rest": i.image.substring(i.image.indexOf("/") + 1)})` +
		fmt.Sprintf(`.transformMapEntry(n, i, {i.name: {%s}})`, strings.Join(parts, ", "))
}
