package human

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/evaluation"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/output"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/wording"
)

// outcomes in the order of the columns.
var outcomes = []engine.Outcome{ //nolint:gochecknoglobals // an immutable table
	engine.Changed, engine.Unchanged, engine.Skipped, engine.NotMatched,
	engine.Denied, engine.Failed, engine.Unsupported,
}

// Close has nothing to add to the summary.
func (h *base) Close() error { return nil }

// summarize ends a format for people: what each rule did, the counts, the next command.
func (h *base) summarize(s evaluation.Summary) error {
	if err := h.Flush(); err != nil {
		return err
	}
	b := h.page()
	if h.printed {
		b.WriteString("\n")
	}
	if h.parts {
		b.WriteString("There are so many different changes that they are grouped in several parts.\n\n")
	}
	h.table(b, s)
	crowded := h.overview.takesOver()
	if crowded {
		h.overview.write(b)
	}
	for _, list := range h.lists() {
		h.list(b, list.title, list.tally)
	}
	b.line(Bold, wording.Counts(s))
	for _, text := range h.remarkable(s) {
		b.line(Yellow, text)
	}
	if crowded {
		b.line(Plain, h.overview.hint())
	}
	for _, text := range h.last(s) {
		b.line(Plain, text)
	}
	return h.write(b)
}

// remarkable are sentences about the run as a whole that a reader must not miss.
func (h *base) remarkable(s evaluation.Summary) []string {
	return slices.DeleteFunc([]string{wording.Restarts(s.Restarts), h.running.sentence(s, h.overview.takesOver())}, func(text string) bool { return text == "" })
}

// last are the lines about what to type next.
func (h *base) last(s evaluation.Summary) []string {
	if h.Hint == nil {
		return nil
	}
	a := h.Hint(s)
	var out []string
	for _, line := range []struct{ title, text string }{{"", a.Note}, {"Next: ", a.Next}, {"To see why: ", a.Why}} {
		if line.text != "" {
			out = append(out, line.title+line.text)
		}
	}
	return out
}

// table counts outcomes by rule.
func (h *base) table(b *page, s evaluation.Summary) {
	if h.traced(s) {
		return
	}
	rules := h.listed(s)
	if len(rules) > 0 {
		b.table(counted(rules, Outcomes(s), func(r engine.RuleRef) string {
			if h.whole {
				return wording.Rule(r)
			}
			return middle(wording.Rule(r), cellRule)
		}))
	}
	matched := 0
	for i := range s.Rules {
		if h.Explain || !s.Rules[i].MetNothing() {
			matched++
		}
	}
	if n := matched - len(rules); n > 0 {
		fmt.Fprintf(b, "%s: see -o table.\n", wording.Plural(n, "more rule"))
	}
	if n := len(s.Rules) - matched; n > 0 {
		fmt.Fprintf(b, "%s matched no object.\n", wording.Plural(n, "rule"))
	}
	if len(s.Rules) > 0 {
		b.WriteString("\n")
	}
}

// traced reports whether the trace above, of the one object of the run, has said what
// the table would count.
func (h *base) traced(s evaluation.Summary) bool { return h.Explain && s.Objects <= 1 }

// listed are the rules of the table. Those that matched no object are counted
// below it, unless everything is explained.
func (h *base) listed(s evaluation.Summary) []evaluation.RuleSummary {
	if h.Explain {
		return s.Rules
	}
	rules := slices.DeleteFunc(slices.Clone(s.Rules), evaluation.RuleSummary.MetNothing)
	if h.overview.takesOver() {
		rules = mostTelling(rules)
	}
	return rules
}

// mostTelling are the rules that failed on, or else changed, the most objects, in the order in which they ran.
func mostTelling(rules []evaluation.RuleSummary) []evaluation.RuleSummary {
	if len(rules) <= rulesListed {
		return rules
	}
	failed := func(r *evaluation.RuleSummary) (n int) {
		for outcome, objects := range r.Outcomes {
			if outcome.Incomplete() {
				n += objects
			}
		}
		return n
	}
	most := slices.Clone(rules)
	slices.SortStableFunc(most, func(a, b evaluation.RuleSummary) int {
		return cmp.Or(cmp.Compare(failed(&b), failed(&a)), cmp.Compare(b.Outcomes[engine.Changed], a.Outcomes[engine.Changed]))
	})
	kept := map[engine.RuleRef]bool{}
	for i := range most[:rulesListed] {
		kept[most[i].Rule] = true
	}
	return slices.DeleteFunc(rules, func(r evaluation.RuleSummary) bool { return !kept[r.Rule] })
}

// The bounds of what the summary lists.
const (
	reasonsListed = 5
	fewObjects    = 5 // whose warnings and failures are easily seen above
)

// reasonList is a list of the summary.
type reasonList struct {
	title string
	tally *Counter
}

// lists are why rules were skipped, which stands nowhere above, and the failures and
// warnings where they are scattered over many objects.
func (h *base) lists() []reasonList {
	var out []reasonList
	if !h.Explain {
		out = append(out, reasonList{"Skipped:", &h.skipped})
	}
	if h.remarked > fewObjects {
		out = append(out, reasonList{"Warnings:", &h.warned})
		if !h.overview.takesOver() || h.overview.failed > failuresListed { // or else they all stand above
			out = append(out, reasonList{"Failed, denied or not supported:", &h.broken})
		}
	}
	return out
}

func (h *base) list(b *page, title string, t *Counter) {
	top, rest := t.Top(reasonsListed)
	if len(top) == 0 {
		return
	}
	b.WriteString(title + "\n")
	for _, c := range top {
		text := c.Text
		if h.overview.takesOver() {
			text = engine.Shorten(text, lineListed)
		}
		b.line(Plain, fmt.Sprintf("%8d  %s", c.N, text))
	}
	if rest > 0 {
		fmt.Fprintf(b, "%8d  for other reasons\n", rest)
	}
	b.WriteString("\n")
}

// Outcomes are the columns of a table of rules: those that came, and changed, since that nothing changed is an answer.
func Outcomes(s evaluation.Summary) []engine.Outcome {
	return slices.DeleteFunc(slices.Clone(outcomes), func(o engine.Outcome) bool {
		return o != engine.Changed && s.Outcomes(o) == 0
	})
}

// counted are the rows of a table of rules, with the number of objects of each outcome.
func counted(rules []evaluation.RuleSummary, columns []engine.Outcome, name func(engine.RuleRef) string) [][]string {
	rows := [][]string{{"POLICY/RULE"}}
	for _, o := range columns {
		rows[0] = append(rows[0], strings.ToUpper(string(o)))
	}
	for i := range rules {
		row := []string{name(rules[i].Rule)}
		for _, o := range columns {
			row = append(row, strconv.Itoa(rules[i].Outcomes[o]))
		}
		rows = append(rows, row)
	}
	return rows
}

// fleet prints what came of each cluster.
func (h *base) fleet(e output.Fleet) error {
	b := h.page()
	if h.Writes { // it ends what is shown
		b.WriteString("\n")
	}
	h.writeClusters(b, e.Clusters)
	if !h.Writes {
		b.WriteString("\n")
	}
	_, err := h.Out.Write(b.Bytes())
	return err
}

// problemShown bounds a problem in a row, in bytes. It is shown in full elsewhere.
const problemShown = 100

// writeClusters writes a row for each cluster.
func (h *base) writeClusters(b *page, clusters []output.Cluster) {
	changed := "would change"
	switch {
	case h.Compares:
		changed = "differ"
	case h.Writes && h.DryRun != "":
		changed = "would be written"
	case h.Writes:
		changed = "written"
	}
	rows := [][]string{{"CLUSTER", "OBJECTS", strings.ToUpper(changed), "FAILED", "PODS RESTART", "PROBLEM"}}
	for i := range clusters {
		c := &clusters[i]
		problem := "<none>"
		if c.Err != nil {
			problem = engine.Shorten(c.Err.Error(), problemShown)
			if c.Problems > 1 {
				problem += fmt.Sprintf(" (and %d more)", c.Problems-1)
			}
		}
		rows = append(rows, []string{c.Name, wording.Number(c.Objects), wording.Number(c.Changed), wording.Number(c.Failed), wording.Number(c.Pods), problem})
	}
	b.table(rows)
}
