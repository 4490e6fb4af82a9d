package mutatingpolicy

import (
	"regexp"
	"slices"
	"strings"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/cel"
)

// derivation describes how a policy for Pods becomes one for Pod controllers.
type derivation struct {
	name     string         // Kyverno's name of the group
	template string         // the path of the Pod template, with dots
	groups   []apiResources // of version v1
}

type apiResources struct {
	group     string
	resources []string
}

// allDerivations are Kyverno's derivations (pkg/cel/autogen/data.go), without ReplicationControllers.
//
//nolint:gochecknoglobals // an immutable table
var allDerivations = []derivation{
	{"cronjobs", "spec.jobTemplate.spec.template", []apiResources{{"batch", []string{"cronjobs"}}}},
	{"defaults", "spec.template", []apiResources{
		{"apps", []string{"daemonsets", "deployments", "replicasets", "statefulsets"}}, {"batch", []string{"jobs"}},
	}},
}

// Autogen returns Kyverno's version of a Pod expression in the policy derived for a controller's resource. It
// returns false if there is none for that resource.
func Autogen(resource, expression string) (string, bool) {
	for _, d := range derivationsFor([]string{resource}) {
		return d.rewrite(expression), true
	}
	return "", false
}

// derivationsFor returns the derivations for the wanted controllers: all for nil, none for an empty list;
// unknown resources are ignored.
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

// onlyPods reports whether Kyverno derives policies for Pod controllers from constraints: one rule for Pods,
// of any name, and neither exclusions nor a label selector (pkg/cel/autogen/support.go).
func onlyPods(c *cel.Constraints) bool {
	if len(c.Rules) != 1 || len(c.Excluded) > 0 || c.Objects != nil {
		return false
	}
	r := c.Rules[0]
	return len(r.ResourceNames) == 0 && slices.Equal(r.APIGroups, []string{""}) && slices.Equal(r.APIVersions, []string{"v1"}) &&
		slices.Equal(r.Resources, []string{"pods"})
}

// constraints returns the constraints of the controllers, with the namespaces and operations of the Pods'.
func (d derivation) constraints(pods *cel.Constraints) *cel.Constraints {
	out := &cel.Constraints{Namespaces: pods.Namespaces}
	for _, g := range d.groups {
		r := pods.Rules[0]
		r.APIGroups, r.Resources = []string{g.group}, g.resources
		out.Rules = append(out.Rules, r)
	}
	return out
}

// sources rewrites expressions, except JSON patches.
func (d derivation) sources(pods []cel.Source) []cel.Source {
	out := slices.Clone(pods)
	for i := range out {
		if !out[i].JSONPatch {
			out[i].Text = d.rewrite(out[i].Text)
		}
	}
	return out
}

// reference matches a Pod path to move into the template, as a whole word: a namespaceObject is another
// object.
var reference = regexp.MustCompile(`\b(object|oldObject|Object)\.(spec|metadata\.labels|metadata\.annotations)\b`)

// rewrite turns a Pod expression into one about the Pod template by string replacement, as Kyverno does
// (pkg/cel/policies/mpol/autogen/autogen.go). Paths of spec, labels and annotations move into the template,
// and so does the content of an expression that begins with Object{. Everything else stays, such as
// object.metadata.name and the type Object.metadata.
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

// wrap builds the object with only the template.
func (d derivation) wrap(content string) string {
	typeName, opening, fields := "Object", "Object{", strings.Split(d.template, ".")
	for _, field := range fields {
		typeName += "." + field
		opening += field + ": " + typeName + "{"
	}
	return opening + content + strings.Repeat("}", len(fields)+1)
}

// closingBrace returns the index of the brace that closes one before the string; 0 if there is none. Braces
// in string literals count too, as in Kyverno.
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
