package render

import (
	"bytes"
	"fmt"
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
	if err := table(&b, s); err != nil {
		return err
	}
	b.WriteString(h.paint(bold, counts(s)) + "\n")
	switch {
	case s.Changed > 0 && h.Next != "":
		b.WriteString("Next: " + line(h.Next) + "\n")
	case s.Changed == 0 && h.Explain != "":
		b.WriteString("To see why: " + line(h.Explain) + "\n")
	}
	return h.write(&b)
}

// table counts outcomes by rule. A column of zeros is left out, but for the
// first: that nothing changed is an answer.
func table(b *bytes.Buffer, s engine.Summary) error {
	if len(s.Rules) == 0 {
		return nil
	}
	var columns []engine.Outcome
	for _, o := range outcomes {
		if o == engine.Changed || s.Outcomes(o) > 0 {
			columns = append(columns, o)
		}
	}
	w := tabwriter.NewWriter(b, 0, 0, 3, ' ', 0)
	fmt.Fprint(w, "POLICY/RULE")
	for _, o := range columns {
		fmt.Fprint(w, "\t"+strings.ToUpper(string(o)))
	}
	fmt.Fprintln(w)
	for i := range s.Rules {
		r := &s.Rules[i]
		fmt.Fprint(w, ruleText(r.Rule))
		for _, o := range columns {
			fmt.Fprintf(w, "\t%d", r.Outcomes[o])
		}
		fmt.Fprintln(w)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	b.WriteString("\n")
	return nil
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
