package render

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
)

// outcomes in the order of the columns.
var outcomes = []engine.Outcome{ //nolint:gochecknoglobals // an immutable table
	engine.Changed, engine.Unchanged, engine.Skipped, engine.NotMatched,
	engine.Denied, engine.Failed, engine.Unsupported,
}

// Close ends a human format: what each rule did, the counts, the next command.
func (h *human) Close(s engine.Summary) error {
	var b bytes.Buffer
	if h.printed {
		b.WriteString("\n")
	}
	if err := h.table(&b, s); err != nil {
		return err
	}
	b.WriteString(h.paint(bold, counts(s)) + "\n")
	switch {
	case s.Changed > 0 && h.Next != "":
		b.WriteString("Next: " + line(h.Next) + "\n")
	case s.Changed == 0 && s.Objects > 0 && h.Explain != "":
		b.WriteString("To see why: " + line(h.Explain) + "\n")
	}
	return h.write(&b)
}

// table counts outcomes by rule. A column of zeros is left out, but for the
// first: that nothing changed is an answer. Rules that matched no object are
// counted in one line, unless reasons were asked for.
func (h *human) table(b *bytes.Buffer, s engine.Summary) error {
	rules := s.Rules
	if !h.Reasons {
		rules = slices.DeleteFunc(slices.Clone(rules), matchedNothing)
	}
	if err := writeTable(b, rules, columns(s)); err != nil {
		return err
	}
	if n := len(s.Rules) - len(rules); n > 0 {
		fmt.Fprintf(b, "%s matched no object.\n", plural(n, "rule"))
	}
	if len(s.Rules) > 0 {
		b.WriteString("\n")
	}
	return nil
}

func matchedNothing(r engine.RuleSummary) bool {
	for o, n := range r.Outcomes {
		if o != engine.NotMatched && n > 0 {
			return false
		}
	}
	return true
}

func columns(s engine.Summary) []engine.Outcome {
	return slices.DeleteFunc(slices.Clone(outcomes), func(o engine.Outcome) bool {
		return o != engine.Changed && s.Outcomes(o) == 0
	})
}

func writeTable(b *bytes.Buffer, rules []engine.RuleSummary, columns []engine.Outcome) error {
	if len(rules) == 0 {
		return nil
	}
	w := tabwriter.NewWriter(b, 0, 0, 3, ' ', 0)
	fmt.Fprint(w, "POLICY/RULE")
	for _, o := range columns {
		fmt.Fprint(w, "\t"+strings.ToUpper(string(o)))
	}
	fmt.Fprintln(w)
	for i := range rules {
		fmt.Fprint(w, ruleText(rules[i].Rule))
		for _, o := range columns {
			fmt.Fprintf(w, "\t%d", rules[i].Outcomes[o])
		}
		fmt.Fprintln(w)
	}
	return w.Flush()
}

// counts is the last sentence: objects and fields, then what went otherwise.
func counts(s engine.Summary) string {
	if s.Objects == 0 {
		return "No objects evaluated."
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s evaluated: %d would change", plural(s.Objects, "object"), s.Changed)
	if s.Changed > 0 {
		fmt.Fprintf(&b, " (%s)", plural(s.Fields, "field"))
	}
	fmt.Fprintf(&b, ", %d would not.", s.Objects-s.Changed)
	var rest []string
	if s.Incomplete > 0 {
		rest = append(rest, plural(s.Incomplete, "object")+" incomplete")
	}
	for _, o := range []engine.Outcome{engine.Skipped, engine.Denied, engine.Failed, engine.Unsupported} {
		if n := s.Outcomes(o); n > 0 {
			rest = append(rest, fmt.Sprintf("%s %s", plural(n, "rule result"), o))
		}
	}
	if s.Warnings > 0 {
		rest = append(rest, plural(s.Warnings, "warning"))
	}
	if len(rest) > 0 {
		b.WriteString(" " + strings.Join(rest, ", ") + ".")
	}
	return b.String()
}
