package human

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/evaluation"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/impact"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/output"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/wording"
)

// outcomes in the order of the columns.
var outcomes = []engine.Outcome{ //nolint:gochecknoglobals // an immutable table
	engine.Changed, engine.AsCreated, engine.Unchanged, engine.Skipped, engine.NotMatched,
	engine.Denied, engine.Failed, engine.Unsupported,
}

// Close has nothing to add to the summary.
func (h *base) Close() error { return nil }

// summarize ends a format for people: the results of each rule, the counts, the next command.
func (h *base) summarize(s evaluation.Summary) error {
	if err := h.Flush(); err != nil {
		return err
	}
	b := h.page()
	if h.printed {
		b.WriteString("\n")
	}
	if h.markdown {
		h.markdownSummary(b, s)
	} else {
		h.summary(b, s)
	}
	return h.write(b)
}

func (h *base) summary(b *page, s evaluation.Summary) {
	if h.parts {
		b.WriteString("There are so many different changes that they are grouped in several parts.\n\n")
	}
	h.table(b, s)
	crowded := h.overview.takesOver()
	if crowded {
		h.frequent(b)
	}
	for _, list := range h.lists(s) {
		h.list(b, list)
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
}

// remarkable returns sentences about the run as a whole that a reader must not miss.
func (h *base) remarkable(s evaluation.Summary) []string {
	return slices.DeleteFunc([]string{
		wording.Restarts(s.Restarts), wording.SetBack(s.SetBack),
		h.running.sentence(s, h.overview.takesOver()),
	}, func(text string) bool { return text == "" })
}

// last returns the lines about what to type next.
func (h *base) last(s evaluation.Summary) []string {
	if h.Hint == nil {
		return nil
	}
	a := h.Hint(s)
	var out []string
	for _, line := range []struct{ title, text string }{
		{"", a.Note},
		{"Next: ", a.Next},
		{"Next, for managed objects: ", a.Fix},
		{"To see why: ", a.Why},
	} {
		if line.text != "" {
			out = append(out, line.title+line.text)
		}
	}
	return out
}

// table counts outcomes by rule.
func (h *base) table(b *page, s evaluation.Summary) {
	if h.Explain && s.Objects <= 1 {
		return // the trace above says it
	}
	if !h.wide && !h.Explain {
		s.Rules = evaluation.MergeParameters(s.Rules)
	}
	rules, above := h.listed(s), ""
	if h.markdown {
		above = "\n"
	}
	switch {
	case len(rules) > 0 && h.markdown:
		b.WriteString(above)
		markdownTable(b, 1, counted(rules, Outcomes(s),
			func(r evaluation.RuleSummary) string {
				return cell(wording.MergedRule(r)) + severitySuffix(r.Rule.Severity)
			}))
	case len(rules) > 0:
		b.table(counted(rules, Outcomes(s), func(r evaluation.RuleSummary) string {
			if h.wide {
				return wording.Rule(r.Rule)
			}
			return cutMiddle(wording.MergedRule(r), cellRule)
		}))
	}
	matched := 0
	var idle []string // rules that matched no object
	for i := range s.Rules {
		if h.Explain || !s.Rules[i].MetNothing() {
			matched++
		} else {
			name := wording.MergedRule(s.Rules[i])
			if h.markdown {
				name = codeSpan(name)
			}
			idle = append(idle, name)
		}
	}
	if n := matched - len(rules); n > 0 {
		fmt.Fprintf(b, "%s: see -o table.\n", wording.Plural(n, "more rule"))
	}
	if n := len(idle); n > 0 {
		fmt.Fprintf(b, "%s%s matched no object: %s\n", above, wording.Plural(n, "rule"), engine.FewOf(idle, n))
	}
	if len(s.Rules) > 0 && !h.markdown {
		b.WriteString("\n")
	}
}

// listed returns the rules of the table. Rules that matched no object are counted below it, unless
// everything is explained.
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

// mostTelling returns the rules that failed on, or else changed, the most objects, in the order in which
// they ran.
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
		return cmp.Or(cmp.Compare(failed(&b), failed(&a)),
			cmp.Compare(b.Outcomes[engine.Changed], a.Outcomes[engine.Changed]))
	})
	kept := map[engine.RuleRef]bool{}
	for i := range most[:rulesListed] {
		kept[most[i].Rule] = true
	}
	return slices.DeleteFunc(rules, func(r evaluation.RuleSummary) bool { return !kept[r.Rule] })
}

// The limits of what the summary lists.
const (
	reasonsListed = 5
	fewObjects    = 5 // objects or groups whose warnings and failures are easily seen above
)

// reasonList is a list of the summary.
type reasonList struct {
	title  string
	tally  *Counter
	others string // label of the reasons that are not listed
}

const otherReasons = "for other reasons"

// lists returns the reasons why rules were skipped, and the failures and warnings if they are scattered over
// many objects.
func (h *base) lists(s evaluation.Summary) []reasonList {
	var out []reasonList
	var managed Counter
	for _, m := range s.Managed {
		managed.add(wording.Source(m.By, m.Source), m.Objects)
	}
	if managed.total > 1 { // otherwise the object says it
		out = append(out, reasonList{"Managed, by source:", &managed, "from other sources"})
	}
	if !h.Explain {
		out = append(out, reasonList{"Skipped:", &h.skipped, otherReasons})
	}
	if h.remarked > fewObjects && (h.markdown || h.grouped == 0 || h.grouped > fewObjects) {
		out = append(out, reasonList{"Warnings:", &h.warned, otherReasons})
		// otherwise they are all above
		if !h.overview.takesOver() || h.overview.partly || h.overview.failed > failuresListed {
			out = append(out, reasonList{"Failed, denied or not supported:", &h.broken, otherReasons})
		}
	}
	return out
}

func (h *base) list(b *page, l reasonList) {
	t := l.tally
	top, rest := t.Top(reasonsListed)
	if len(top) == 0 {
		return
	}
	above, bullet, others, below := "", "%8d  %s", l.others, "\n"
	if h.markdown {
		above, bullet, others, below = "\n", "- %d%s", " "+others, ""
	}
	b.WriteString(above + l.title + "\n" + above)
	for _, c := range top {
		text := c.Text
		switch {
		case h.markdown:
			text = ": " + codeSpan(text)
		case h.overview.takesOver() && l.others == otherReasons:
			text = h.overview.shortReason(text, t == &h.broken)
		}
		b.line(Plain, fmt.Sprintf(bullet, c.N, text))
	}
	if rest > 0 {
		b.line(Plain, fmt.Sprintf(bullet, rest, others))
	}
	b.WriteString(below)
}

// Outcomes returns the columns of a table of rules: the outcomes that occurred, and always changed, since it
// is an answer that nothing changed.
func Outcomes(s evaluation.Summary) []engine.Outcome {
	return slices.DeleteFunc(slices.Clone(outcomes), func(o engine.Outcome) bool {
		return o != engine.Changed && s.Outcomes(o) == 0
	})
}

// counted returns the rows of a table of rules, with the number of objects of each outcome.
func counted(rules []evaluation.RuleSummary, columns []engine.Outcome,
	name func(evaluation.RuleSummary) string,
) [][]string {
	rows := [][]string{{"POLICY/RULE"}}
	for _, o := range columns {
		rows[0] = append(rows[0], strings.ToUpper(string(o)))
	}
	for i := range rules {
		row := []string{name(rules[i])}
		for _, o := range columns {
			row = append(row, strconv.Itoa(rules[i].Outcomes[o]))
		}
		rows = append(rows, row)
	}
	return rows
}

// fleet prints the result of each cluster.
func (h *base) fleet(e output.Fleet) error {
	b := h.page()
	if h.markdown {
		table := h.page()
		h.writeClusters(table, e.Clusters)
		b.WriteString("## Clusters\n")
		fenced(b, "", table.String())
		return h.write(b)
	}
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

// problemShown is the maximum length of a problem in a row, in bytes. It is shown in full elsewhere.
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
	for _, c := range clusters {
		problem := "<none>"
		if c.Problem != "" {
			problem = engine.Shorten(c.Problem, problemShown)
			if c.Problems > 1 {
				problem += fmt.Sprintf(" (and %d more)", c.Problems-1)
			}
		}
		rows = append(rows, []string{
			c.Name, wording.Number(c.Objects), wording.Number(c.Changed),
			wording.Number(c.Failed), wording.Number(c.Pods), problem,
		})
	}
	b.table(rows)
}

// running counts the changes to Pods and Jobs, most of whose fields are immutable.
type running struct {
	changed, refused int
	workloads        map[string]bool // from whose templates they come
	cronJobs         bool            // among the workloads
	rules            map[string]bool // that write immutable fields
}

func (r *running) add(c *engine.Change) {
	switch c.Subject.GroupKind {
	case schema.GroupKind{Kind: "Pod"}, schema.GroupKind{Group: "batch", Kind: "Job"}:
	default:
		return
	}
	if !c.Changed() {
		return
	}
	r.changed++
	if !c.Refused() {
		return
	}
	if r.refused++; r.rules == nil {
		r.rules, r.workloads = map[string]bool{}, map[string]bool{}
	}
	if kind, name, ok := strings.Cut(impact.Workload(c.Before), " "); ok && kind != "Job" {
		key := engine.ObjectKey{
			GroupKind: schema.GroupKind{Kind: kind}, Namespace: c.Subject.Namespace,
			Name: name, Cluster: c.Subject.Cluster,
		}
		r.cronJobs = r.cronJobs || kind == "CronJob"
		r.workloads[key.String()] = true
	}
	for _, f := range c.Fields {
		if slices.ContainsFunc(c.Impacts,
			func(m engine.Impact) bool { return m.Code.Refuses() && m.Concerns(f.Path) }) {
			r.rules[f.Rule().String()] = true
		}
	}
}

// sentence says that no change to Pods and Jobs can be made, and where it can; "" if one can. In an overview
// it says how many cannot. A single object says it above.
func (r *running) sentence(s evaluation.Summary, overview bool) string {
	var text string
	switch {
	case r.refused < 2:
		return ""
	case r.refused == r.changed:
		text = fmt.Sprintf("No change to a Pod or Job can be made (%s): the server refuses it once the object is there.", wording.Plural(r.refused, "object"))
	case !overview:
		return ""
	default:
		text = fmt.Sprintf("%d of %d changes to Pods and Jobs would be refused: %s would change what is fixed once the object is there.", r.refused, r.changed, engine.Few(slices.Sorted(maps.Keys(r.rules))))
	}
	derived, workloads := engine.Few(r.derived(s)), engine.Few(slices.Sorted(maps.Keys(r.workloads)))
	if workloads = cmp.Or(workloads, "workloads"); derived != "" {
		return text + " The templates of " + workloads + " take it: see " + derived + "."
	}
	if len(r.workloads) > 0 {
		return text + " The templates of " + workloads + " would take it."
	}
	return text
}

// derived returns the rules that autogen has derived from these for the workloads.
func (r *running) derived(s evaluation.Summary) []string {
	var out []string
	for i := range s.Rules {
		ref := s.Rules[i].Rule
		written, isDerived := strings.CutPrefix(ref.Rule, "autogen-")
		if !isDerived {
			continue
		}
		written, ofCronJobs := strings.CutPrefix(written, "cronjob-")
		if ofCronJobs && !r.cronJobs {
			continue
		}
		of := ref
		of.Rule = written
		if r.rules[of.String()] {
			out = append(out, ref.String())
		}
	}
	return out
}
