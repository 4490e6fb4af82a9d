package wording

import (
	"fmt"
	"strings"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/evaluation"
)

// Rule returns the name of a rule and how it came to apply: "kyverno team-labels/add via b".
func Rule(r engine.RuleRef) string {
	var b strings.Builder
	if r.Dialect != "" {
		b.WriteString(r.Dialect + " ")
	}
	b.WriteString(r.String())
	if r.Via != "" {
		b.WriteString(" via " + r.Via)
	}
	return b.String()
}

// mostRules is how many rules Trigger names.
const mostRules = 3

// Trigger returns the name of what triggered a step, and the rules that change that in the same run: "ConfigMap shop/b, as
// changed by labels/add".
func Trigger(s *engine.Step) string {
	out := s.Trigger.String()
	for i, r := range s.TriggerChangedBy {
		switch {
		case i == 0:
			out += ", as changed by " + r.String()
		case i == mostRules:
			return out + fmt.Sprintf(" and %d more", len(s.TriggerChangedBy)-i)
		default:
			out += ", " + r.String()
		}
	}
	return out
}

// Policy returns the name of the policy of a rule: "kyverno team-labels".
func Policy(r engine.RuleRef) string {
	return Rule(engine.RuleRef{Dialect: r.Dialect, Policy: r.Policy})
}

// ResourceName returns an object's name as `kubectl -o name` prints it:
// "deployment.apps/web", without the namespace.
func ResourceName(k engine.ObjectKey) string {
	kind := strings.ToLower(k.Kind)
	if k.Group != "" {
		kind += "." + k.Group
	}
	return kind + "/" + k.Name
}

// Counts returns the sentence that ends the formats for people: how many objects were
// evaluated and would change, and what went otherwise.
func Counts(s evaluation.Summary) string {
	var b strings.Builder
	if s.Objects == 0 {
		b.WriteString("No objects evaluated.")
	} else {
		fmt.Fprintf(&b, "%s evaluated: %d would change", Plural(s.Objects, "object"), s.Changed)
		if s.Changed > 0 {
			fmt.Fprintf(&b, " (%s)", Plural(s.Fields-s.Records, "field")+records(s.Records))
		}
		fmt.Fprintf(&b, ", %d would not.", s.Objects-s.Changed)
	}
	b.WriteString(canary(s.Canary))
	var rest []string
	if s.Refused > 0 {
		rest = append(rest, Plural(s.Refused, "object")+" would be refused by the server")
	}
	if s.Incomplete > 0 {
		rest = append(rest, Plural(s.Incomplete, "object")+" incomplete")
	}
	for _, o := range []engine.Outcome{engine.Skipped, engine.Denied, engine.Failed, engine.Unsupported} {
		if n := s.Outcomes(o); n > 0 {
			rest = append(rest, fmt.Sprintf("%s %s", Plural(n, "rule result"), o))
		}
	}
	if s.Warnings > 0 {
		rest = append(rest, Plural(s.Warnings, "warning"))
	}
	if len(rest) > 0 {
		b.WriteString(" " + strings.Join(rest, ", ") + ".")
	}
	return b.String()
}

// Fields counts the fields of a change, and apart the annotation that says what they are: "3 fields and 1 annotation".
func Fields(fields []engine.FieldChange) string {
	counted, noted := engine.CountRecords(fields)
	return Plural(counted, "field") + records(noted)
}

func records(n int) string {
	switch n {
	case 0:
		return ""
	case 1:
		return " and 1 annotation"
	}
	return fmt.Sprintf(" and %d annotations", n)
}

// canary says how a run was kept to some of the objects.
func canary(c *evaluation.Canary) string {
	text := ""
	if c != nil && c.Percent > 0 {
		text += fmt.Sprintf(" Canary: %d %% of the objects, %d left out.", c.Percent, c.LeftOut)
	}
	if c != nil && c.More {
		text += fmt.Sprintf(" Canary: ended after %s, and more objects would change.", Plural(c.MaxObjects, "changed object"))
	}
	return text
}

// Restarts returns a sentence on what a run would restart, and "" where that is nothing.
func Restarts(r evaluation.Restarts) string {
	if r.Pods == 0 {
		return ""
	}
	return fmt.Sprintf("%s of %s would restart.", Plural(r.Pods, "Pod"), Plural(r.Workloads, "workload"))
}
