package admissionpolicy

import "strings"

// Where lists what the constraints ask for beside what their operations and
// Selections say.
func (c *Constraints) Where() []string {
	var out []string
	for i := range c.Rules {
		if r := &c.Rules[i]; r.Scope == "Namespaced" || r.Scope == "Cluster" {
			out = append(out, "scope of "+strings.Join(r.Resources, ", ")+": "+r.Scope)
		}
	}
	if c.Namespaces != nil {
		out = append(out, "namespaceSelector: "+c.Namespaces.String())
	}
	for i := range c.Excluded {
		out = append(out, "unless "+c.Excluded[i].String())
	}
	return out
}

// Everything lists all that the constraints ask for, but operations.
func (c *Constraints) Everything() []string {
	var out []string
	if len(c.Rules) > 0 {
		out = append(out, "resourceRules: "+ruleTexts(c.Rules))
	}
	if c.Objects != nil {
		out = append(out, "objectSelector: "+c.Objects.String())
	}
	return append(out, c.Where()...)
}
