package catalog

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/output/formats"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/output/structured"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/redact"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/wording"
)

// Formats returns the formats of Print.
func Formats() []string {
	return []string{formats.Table, formats.Wide, formats.JSON, formats.YAML, formats.Name}
}

// Print writes a list in a format. The error is a *formats.UnknownFormatError or the writer's.
func Print(out io.Writer, format string, l List) error {
	switch format {
	case formats.JSON, formats.YAML:
		return structured.Write(out, format == formats.YAML, l)
	case formats.Name:
		return structured.WriteNames(out, policyNames(l)...)
	case formats.Table, formats.Wide:
		return printTable(out, l, format == formats.Wide)
	}
	return &formats.UnknownFormatError{Format: format, Allowed: Formats()}
}

// policyNames returns the names of rules for --only and --skip.
func policyNames(l List) []string {
	var names []string
	for i := range l.Policies {
		for _, r := range l.Policies[i].Rules {
			names = append(names, r.Ref)
		}
	}
	return engine.Distinct(names)
}

// printTable writes a line for each rule, and the problems below the table.
func printTable(out io.Writer, l List, wide bool) error {
	var b strings.Builder
	columns := []string{"POLICY", "RULE", "LANGUAGE", "MATCHES", "CHANGES", "EXISTING", "ASKS"}
	if wide {
		columns = append(columns, "OPERATIONS", "WHERE", "VERSION", "ORIGIN")
	}
	if l.Clusters != nil {
		b.WriteString(clusterTable(l.Clusters))
		columns = slices.Insert(columns, 2, "CLUSTERS")
	}
	rows := [][]string{columns}
	for i := range l.Policies {
		p := &l.Policies[i]
		rules := p.Rules
		if len(rules) == 0 {
			rules = []Rule{{}}
		}
		for i := range rules {
			cells := row(p, &rules[i], wide)
			if l.Clusters != nil {
				cells = slices.Insert(cells, 2, l.where(p.Clusters))
			}
			for i, cell := range cells {
				cells[i] = wording.Cell(cell)
			}
			rows = append(rows, cells)
		}
	}
	b.WriteString(wording.Table(rows) + notes(l))
	_, err := io.WriteString(redact.NewWriter(out), b.String())
	return err
}

// clusterTable returns a row for each cluster, and an empty line.
func clusterTable(clusters []Cluster) string {
	rows := [][]string{{"CLUSTER", "POLICIES", "RULES", "ERRORS", "PROBLEM"}}
	for _, c := range clusters {
		problem := wording.Cell(engine.Shorten(cmp.Or(c.Problem, "<none>"), problemShown))
		rows = append(rows,
			[]string{wording.Cell(c.Name), fmt.Sprint(c.Policies), fmt.Sprint(c.Rules), fmt.Sprint(c.Errors), problem})
	}
	return wording.Table(rows) + "\n"
}

// problemShown is the maximum length of a problem in a row, in bytes. It is shown in full elsewhere.
const problemShown = 100

// row returns the cells of a rule.
func row(p *Policy, r *Rule, wide bool) []string {
	name := p.Name
	if p.Namespace != "" {
		name = p.Namespace + "/" + name
	}
	rule := r.Name
	if r.Via != "" {
		rule = "via " + r.Via
	}
	changes := engine.Few(r.Changes)
	if r.Existing != "" && changes == "" {
		changes = "(computed)"
	}
	cells := []string{name, rule, p.Dialect, matches(r, wide), changes, r.Existing, asks(r)}
	if wide {
		cells = append(cells, strings.Join(r.Operations, ","), strings.Join(r.Where, "; "), p.APIVersion, p.Origin)
	}
	return cells
}

// matches returns the matched objects and the targets, with the number of further conditions if they have no
// column of their own.
func matches(r *Rule, wide bool) string {
	out := engine.Few(r.Matches)
	if len(r.Where) > 0 && !wide {
		out += " (" + wording.Plural(len(r.Where), "condition") + ")"
	}
	if len(r.Targets) > 0 {
		out += " -> " + engine.Few(r.Targets)
	}
	return out
}

func asks(r *Rule) string {
	var out []string
	for _, a := range r.Asks {
		out = append(out, string(a.Of))
	}
	return strings.Join(engine.Distinct(out), ",")
}

// notes returns the problems of policies, and the flags that they need, after an empty line.
func notes(l List) string {
	var b strings.Builder
	known := map[string]bool{}
	add := func(format string, args ...any) {
		if line := redact.EscapeLine(fmt.Sprintf(format, args...)); !known[line] {
			known[line] = true
			b.WriteString(line + "\n")
		}
	}
	for i := range l.Policies {
		p := &l.Policies[i]
		for _, problem := range p.Problems {
			add("%s: %s%s", problem.Severity, strings.Join(problem.place(p), ": "), l.onClusters(p.Clusters))
		}
		for _, r := range p.Rules {
			if r.Unsupported != "" {
				add("warning: %s is not supported: %s", r.Ref, r.Unsupported)
			}
			for _, a := range r.Asks {
				if a.Flag != "" {
					add("note: %s asks %s, which takes %s", r.Ref, a.What, a.Flag)
				}
			}
		}
	}
	for _, problem := range l.Problems {
		add("%s: %s%s", problem.Severity, strings.Join(problem.place(nil), ": "), l.onClusters(problem.Clusters))
	}
	for _, line := range l.deprecated() {
		add("deprecated: %s", line)
	}
	if l.Idle > 0 {
		add("note: left out, without a rule that mutates: %s", wording.Plural(l.Idle, "installed policy"))
	}
	if b.Len() == 0 {
		return ""
	}
	return "\n" + b.String()
}

// place returns the place of a problem, and its text.
func (x Problem) place(p *Policy) []string {
	var out []string
	if p != nil {
		out = append(out, cmp.Or(x.Origin, p.Origin), p.Kind+" "+p.Name)
	} else if x.Origin != "" {
		out = append(out, x.Origin)
	}
	if x.Rule != "" && len(out) > 0 {
		out[len(out)-1] += ", rule " + x.Rule
	}
	if x.Field != "" {
		out = append(out, x.Field)
	}
	return append(out, x.Text)
}
