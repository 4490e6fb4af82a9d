package render

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/render/tally"
)

// outcomes in the order of the columns.
var outcomes = []engine.Outcome{ //nolint:gochecknoglobals // an immutable table
	engine.Changed, engine.Unchanged, engine.Skipped, engine.NotMatched,
	engine.Denied, engine.Failed, engine.Unsupported,
}

// Close ends a human format: what each rule did, the counts, the next command.
func (h *human) Close(s engine.Summary) error {
	if err := h.Flush(); err != nil {
		return err
	}
	var b bytes.Buffer
	if h.printed {
		b.WriteString("\n")
	}
	if h.parts {
		b.WriteString("There are so many different changes that they were put together in parts.\n\n")
	}
	if err := h.table(&b, s); err != nil {
		return err
	}
	for _, list := range h.lists() {
		h.list(&b, list.title, list.tally)
	}
	b.WriteString(h.paint(bold, counts(s)) + "\n")
	if text := restarts(s.Restarts); text != "" {
		b.WriteString(h.paint(yellow, text) + "\n")
	}
	if text := h.last(s); text != "" {
		b.WriteString(text + "\n")
	}
	return h.write(&b)
}

// last is the command to type next, if there is one.
func (h *human) last(s engine.Summary) string {
	switch {
	case s.Changed > 0 && h.Next != "":
		return "Next: " + line(h.Next)
	case s.Changed == 0 && s.Objects > 0 && h.Why != "":
		return "To see why: " + line(h.Why)
	}
	return ""
}

// table counts outcomes by rule. A column of zeros is left out, but for the
// first: that nothing changed is an answer.
func (h *human) table(b *bytes.Buffer, s engine.Summary) error {
	rules := h.listed(s)
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

// listed are the rules of the table. Those that matched no object are counted
// below it, unless everything is to be told.
func (h *human) listed(s engine.Summary) []engine.RuleSummary {
	if h.Explain {
		return s.Rules
	}
	return slices.DeleteFunc(slices.Clone(s.Rules), matchedNothing)
}

// The bounds of what the summary lists.
const (
	reasonsListed = 5
	fewObjects    = 5 // whose warnings and failures are easily seen above
)

// reasonList is a list of the summary.
type reasonList struct {
	title string
	tally *tally.Tally
}

// lists are why rules were skipped, which is told nowhere above, and what went
// wrong or was warned of, where that is scattered over many objects.
func (h *human) lists() []reasonList {
	var out []reasonList
	if !h.Explain {
		out = append(out, reasonList{"Skipped:", &h.skipped})
	}
	if h.told > fewObjects {
		out = append(out, reasonList{"Warnings:", &h.warned}, reasonList{"Failed, denied or not supported:", &h.broken})
	}
	return out
}

func (h *human) list(b *bytes.Buffer, title string, t *tally.Tally) {
	top, rest := t.Top(reasonsListed)
	if len(top) == 0 {
		return
	}
	b.WriteString(title + "\n")
	for _, c := range top {
		fmt.Fprintf(b, "%8d  %s\n", c.N, h.text(c.Text))
	}
	if rest > 0 {
		fmt.Fprintf(b, "%8d  for other reasons\n", rest)
	}
	b.WriteString("\n")
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
