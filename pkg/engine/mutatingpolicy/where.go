package mutatingpolicy

import "strings"

// Where lists what the constraints ask for beside what their Operations and
// Selections say.
func (c *Constraints) Where() []string {
	var out []string
	for i := range c.rules {
		x := &c.rules[i]
		if x.scope == "" || x.scope == "*" {
			continue
		}
		names := make([]string, len(x.resources))
		for j, r := range x.resources {
			names[j] = r.name
		}
		out = append(out, "scope of "+strings.Join(names, ", ")+": "+x.scope)
	}
	if c.namespaces != nil {
		out = append(out, "namespaceSelector: "+c.namespaces.String())
	}
	for i := range c.excluded {
		out = append(out, "unless "+c.excluded[i].String())
	}
	return out
}
