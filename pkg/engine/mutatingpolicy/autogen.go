package mutatingpolicy

import (
	"regexp"
	"slices"
	"strings"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/cel/match"
)

// derivation is how a policy for Pods becomes one for some of their controllers.
type derivation struct {
	// Name is what Kyverno calls the group: "defaults" or "cronjobs".
	Name string
	// Rules are the resource rules of the derived policy, without operations.
	Rules []resources
	// template is the path of the Pod template in the controllers.
	template []string
}

// resources are resources of one API group that a derived policy matches.
type resources struct {
	Group, Version string
	Names          []string
}

// controller is a resource that has a Pod template.
type controller struct {
	name, group string
	template    string // "spec.template", dots between the fields
}

// controllers are those that Kyverno knows (pkg/cel/autogen/data.go), in the
// order of groups and names. ReplicationControllers are not among them.
//
//nolint:gochecknoglobals // an immutable table
var controllers = []controller{
	{"daemonsets", "apps", "spec.template"},
	{"deployments", "apps", "spec.template"},
	{"replicasets", "apps", "spec.template"},
	{"statefulsets", "apps", "spec.template"},
	{"cronjobs", "batch", "spec.jobTemplate.spec.template"},
	{"jobs", "batch", "spec.template"},
}

// knownController reports whether Kyverno derives policies for a resource.
func knownController(resource string) bool {
	return slices.ContainsFunc(controllers, func(c controller) bool { return c.name == resource })
}

// Autogen returns what Kyverno makes of an expression about a Pod in the policy that it derives for a
// controller of Pods. It reports false where it derives none for that resource.
func Autogen(resource, expression string) (string, bool) {
	for _, d := range derivations([]string{resource}) {
		return d.Rewrite(expression), true
	}
	return "", false
}

// derivations are those for the wanted controllers: nil stands for all, an empty
// list for none, and resources that are not Known count for nothing.
func derivations(wanted []string) []derivation {
	var out []derivation
	for _, name := range []string{"cronjobs", "defaults"} {
		d := derivation{Name: name}
		for _, c := range controllers {
			if (c.name == "cronjobs") == (name == "cronjobs") && (wanted == nil || slices.Contains(wanted, c.name)) {
				d.add(c)
			}
		}
		if len(d.Rules) > 0 {
			out = append(out, d)
		}
	}
	return out
}

func (d *derivation) add(c controller) {
	d.template = strings.Split(c.template, ".")
	if last := len(d.Rules) - 1; last >= 0 && d.Rules[last].Group == c.group {
		d.Rules[last].Names = append(d.Rules[last].Names, c.name)
		return
	}
	d.Rules = append(d.Rules, resources{Group: c.group, Version: "v1", Names: []string{c.name}})
}

// onlyPods reports whether constraints are those of a policy that Kyverno derives
// policies for Pod controllers from: one rule for Pods, of any name, and neither
// exclusions nor a selector of labels (pkg/cel/autogen/support.go).
func onlyPods(c *match.Constraints) bool {
	if len(c.Rules) != 1 || len(c.Excluded) > 0 || c.Objects != nil {
		return false
	}
	r := c.Rules[0]
	return len(r.Names) == 0 && slices.Equal(r.Groups, []string{""}) && slices.Equal(r.Versions, []string{"v1"}) &&
		slices.Equal(r.Resources, []match.Resource{{Name: "pods"}})
}

// constraints derives those of the controllers, in the namespaces and for the operations
// of those for Pods.
func (d derivation) constraints(pods *match.Constraints) *match.Constraints {
	out := &match.Constraints{Namespaces: pods.Namespaces}
	for _, g := range d.Rules {
		r := match.Rule{Groups: []string{g.Group}, Versions: []string{g.Version}, Operations: pods.Rules[0].Operations, Scope: pods.Rules[0].Scope}
		for _, name := range g.Names {
			r.Resources = append(r.Resources, match.Resource{Name: name})
		}
		out.Rules = append(out.Rules, r)
	}
	return out
}

// reference is a path of a Pod that stands for one in the template. A
// namespaceObject is another object: the word has to begin where the path does.
var reference = regexp.MustCompile(`\b(object|oldObject|Object)\.(spec|metadata\.labels|metadata\.annotations)\b`)

// Rewrite turns an expression about a Pod into one about the Pod template, as
// Kyverno does (pkg/cel/policies/mpol/autogen/autogen.go): by text. Paths of spec, labels
// and annotations move into the template, and an expression that begins with
// Object{ has its content moved there. Everything else stays as it is written,
// such as object.metadata.name and the type Object.metadata.
func (d derivation) Rewrite(expression string) string {
	template := strings.Join(d.template, ".")
	expression = reference.ReplaceAllString(expression, "${1}."+template+".${2}")
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
	var b strings.Builder
	b.WriteString("Object{")
	typeName := "Object"
	for _, field := range d.template {
		typeName += "." + field
		b.WriteString(field + ": " + typeName + "{")
	}
	b.WriteString(content)
	b.WriteString(strings.Repeat("}", len(d.template)+1))
	return b.String()
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
