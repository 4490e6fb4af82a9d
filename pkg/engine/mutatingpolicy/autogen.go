package mutatingpolicy

import (
	"regexp"
	"slices"
	"strings"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/cel"
)

// derivation is how a policy for Pods becomes one for some of their controllers.
type derivation struct {
	name     string         // what Kyverno calls the group
	template string         // the path of the Pod template, dots between the fields
	groups   []apiResources // of version v1
}

// apiResources are resources of one API group.
type apiResources struct {
	group     string
	resources []string
}

// allDerivations are those that Kyverno knows (pkg/cel/autogen/data.go).
// ReplicationControllers are not among the controllers.
//
//nolint:gochecknoglobals // an immutable table
var allDerivations = []derivation{
	{"cronjobs", "spec.jobTemplate.spec.template", []apiResources{{"batch", []string{"cronjobs"}}}},
	{"defaults", "spec.template", []apiResources{
		{"apps", []string{"daemonsets", "deployments", "replicasets", "statefulsets"}}, {"batch", []string{"jobs"}},
	}},
}

// Autogen returns what Kyverno makes of an expression about a Pod in the policy that it derives for a
// controller of Pods. It reports false where it derives none for that resource.
func Autogen(resource, expression string) (string, bool) {
	for _, d := range derivationsFor([]string{resource}) {
		return d.rewrite(expression), true
	}
	return "", false
}

// derivationsFor are those for the wanted controllers: nil stands for all, an empty
// list for none, and resources that Kyverno does not know count for nothing.
func derivationsFor(wanted []string) []derivation {
	var out []derivation
	for _, d := range allDerivations {
		groups := d.groups
		d.groups = nil
		for _, g := range groups {
			g.resources = slices.DeleteFunc(slices.Clone(g.resources),
				func(name string) bool { return wanted != nil && !slices.Contains(wanted, name) })
			if len(g.resources) > 0 {
				d.groups = append(d.groups, g)
			}
		}
		if len(d.groups) > 0 {
			out = append(out, d)
		}
	}
	return out
}

// onlyPods reports whether constraints are those of a policy that Kyverno derives
// policies for Pod controllers from: one rule for Pods, of any name, and neither
// exclusions nor a selector of labels (pkg/cel/autogen/support.go).
func onlyPods(c *cel.Constraints) bool {
	if len(c.Rules) != 1 || len(c.Excluded) > 0 || c.Objects != nil {
		return false
	}
	r := c.Rules[0]
	return len(r.ResourceNames) == 0 && slices.Equal(r.APIGroups, []string{""}) && slices.Equal(r.APIVersions, []string{"v1"}) &&
		slices.Equal(r.Resources, []string{"pods"})
}

// constraints derives those of the controllers, in the namespaces and for the operations
// of those for Pods.
func (d derivation) constraints(pods *cel.Constraints) *cel.Constraints {
	out := &cel.Constraints{Namespaces: pods.Namespaces}
	for _, g := range d.groups {
		r := pods.Rules[0]
		r.APIGroups, r.Resources = []string{g.group}, g.resources
		out.Rules = append(out.Rules, r)
	}
	return out
}

// reference is a path of a Pod that stands for one in the template. A
// namespaceObject is another object: the word has to begin where the path does.
var reference = regexp.MustCompile(`\b(object|oldObject|Object)\.(spec|metadata\.labels|metadata\.annotations)\b`)

// rewrite turns an expression about a Pod into one about the Pod template, as
// Kyverno does (pkg/cel/policies/mpol/autogen/autogen.go): by text. Paths of spec, labels
// and annotations move into the template, and an expression that begins with
// Object{ has its content moved there. Everything else stays as it is written,
// such as object.metadata.name and the type Object.metadata.
func (d derivation) rewrite(expression string) string {
	expression = reference.ReplaceAllString(expression, "${1}."+d.template+".${2}")
	content, isObject := strings.CutPrefix(strings.TrimSpace(expression), "Object{")
	if !isObject {
		return expression
	}
	end := closingBrace(content)
	if end <= 0 {
		return expression
	}
	return d.wrap(content[:end]) + content[end+1:]
}

// wrap builds the object that holds nothing but the template.
func (d derivation) wrap(content string) string {
	typeName, opening, fields := "Object", "Object{", strings.Split(d.template, ".")
	for _, field := range fields {
		typeName += "." + field
		opening += field + ": " + typeName + "{"
	}
	return opening + content + strings.Repeat("}", len(fields)+1)
}

// closingBrace is where the brace that stands before the text is closed; 0 where
// it is not. Braces in strings count too, as they do for Kyverno.
func closingBrace(text string) int {
	open := 1
	for i := range len(text) {
		switch text[i] {
		case '{':
			open++
		case '}':
			open--
		}
		if open == 0 {
			return i
		}
	}
	return 0
}
