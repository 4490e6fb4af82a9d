package human

import (
	"fmt"
	"strings"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/output"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/wording"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/write"
)

// outcomeOrder is the order in which results are counted: writes first.
var outcomeOrder = []write.Outcome{ //nolint:gochecknoglobals // an immutable table
	write.Applied, write.Planned, write.Unchanged, write.ServerKeepsValue, write.Deleted, write.Replaced,
	write.Terminating, write.Managed, write.Ignored, write.Conflicted, write.Declined, write.Drifted,
	write.Failed, write.NotTried,
}

// Writes prints a line for each object that was to be written, in kubectl apply's words; with ListAll, it
// ends with a table of the outcome of each rule, object by object. Objects that are not written for the same
// reason share a line, unless they are few.
type Writes struct {
	base
	counts    map[write.Outcome]int
	causes    write.Causes
	earlier   int // objects of the run before it was resumed
	rows      []outcomeRow
	conflicts output.Conflicts
	unwritten wording.Reasons // not printed yet
}

// NewWrites returns a printer of what was written.
func NewWrites(o output.Options) *Writes {
	return &Writes{base: newBase(o), counts: map[write.Outcome]int{}}
}

// Print shows the line of an object that was to be written.
func (p *Writes) Print(s output.Shown) error {
	w, ok := s.Event().(output.Written)
	if !ok {
		return nil
	}
	p.counts[w.Outcome]++
	p.causes.Add(w.Result)
	if p.DryRun == "" && p.ListAll {
		p.rows = append(p.rows, rowsOf(w)...)
	}
	p.conflicts.Add(w)
	if w.Earlier {
		p.earlier++
	}
	if w.Outcome == write.NotTried {
		return nil // the count at the end says it
	}
	text := wording.ResourceName(w.Key) + " " + w.Verb()
	if w.Key.Namespace != "" {
		text += " in namespace " + w.Key.Namespace
	}
	if w.Err != nil {
		p.hold(w, text)
		return nil
	}
	if w.Earlier {
		return nil
	}
	if w.Status != nil && w.Status.Err != nil {
		text += ", but not its status: " + output.Written{Result: w.Status}.Explanation()
	}
	b := p.page()
	b.line(Plain, text+p.suffix())
	for _, n := range w.Notes() {
		b.line(Yellow, "    "+n)
	}
	return p.write(b)
}

// hold keeps the line of an object that is not written for Flush.
func (p *Writes) hold(w output.Written, text string) {
	why := w.Explanation()
	reason := p.unwritten.Add(w.Key, w.Verb()+": "+why)
	if p.ListAll || !reason.Many() {
		reason.Lines = append(reason.Lines, text+": "+why+p.suffix())
	}
}

// Flush prints which objects were not written, and why.
func (p *Writes) Flush() error {
	all := p.unwritten.All()
	if len(all) == 0 {
		return nil
	}
	b := p.page()
	for _, reason := range all {
		if reason.Many() && !p.ListAll {
			b.line(Red, wording.Plural(reason.Count, "object")+" "+reason.Text+p.suffix())
			b.line(Plain, "    "+reason.Names()+" (--list-all lists them)")
			continue
		}
		for _, line := range reason.Lines {
			b.line(Red, line)
		}
	}
	p.unwritten = wording.Reasons{}
	return p.write(b)
}

// suffix marks a dry run, as kubectl does.
func (p *Writes) suffix() string {
	switch p.DryRun {
	case "client":
		return " (dry run)"
	case "server":
		return " (server dry run)"
	}
	return ""
}

// Close prints the number of objects with each outcome.
func (p *Writes) Close() error {
	if err := p.Flush(); err != nil {
		return err
	}
	var parts []string
	total := 0
	for _, o := range outcomeOrder {
		if n := p.counts[o]; n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, o))
			if o == write.Failed {
				parts[len(parts)-1] += p.causes.String()
			}
			total += n
		}
	}
	text := "Nothing to apply."
	if total > 0 {
		text = fmt.Sprintf("%s: %s%s.", wording.Plural(total, "object"), strings.Join(parts, ", "), p.suffix())
	}
	if p.earlier > 0 {
		text += fmt.Sprintf(" %d of them before the run was resumed.", p.earlier)
	}
	b := p.page()
	if p.printed {
		b.WriteString("\n")
	}
	p.table(b)
	p.owners(b)
	b.line(Bold, text)
	return p.write(b)
}

// outcomeRow is the outcome of one rule on one target.
type outcomeRow struct {
	rule    engine.RuleRef
	key     engine.ObjectKey
	status  output.RuleStatus
	message string
}

// rowsOf returns a row for each rule that makes the change.
func rowsOf(w output.Written) []outcomeRow {
	rules := w.Rules
	if len(rules) == 0 {
		rules = []engine.RuleRef{{}}
	}
	rows := make([]outcomeRow, len(rules))
	for i, rule := range rules {
		rows[i] = outcomeRow{rule: rule, key: w.Key, status: w.RuleStatus(), message: w.Message()}
	}
	return rows
}

func (p *Writes) table(b *page) {
	if len(p.rows) == 0 {
		return
	}
	rows := [][]string{{"POLICY", "RULE", "KIND", "NAME", "NAMESPACE", "STATUS", "MESSAGE"}}
	for i := range p.rows {
		r := &p.rows[i]
		kind := r.key.Kind
		if r.key.Subresource != "" {
			kind += "/" + r.key.Subresource
		}
		texts := []string{r.rule.Policy, r.rule.Rule, kind, r.key.Name, r.key.Namespace, string(r.status)}
		rows = append(rows, append(escapedCells(texts, "-"), r.message))
	}
	b.table(rows)
	b.WriteString("\n")
}

// owners writes who owns the fields that were not written, and the flags that take them over.
func (p *Writes) owners(b *page) {
	if len(p.conflicts) == 0 {
		return
	}
	b.line(Plain, "Fields that other managers own:")
	for _, c := range p.conflicts {
		b.line(Plain, fmt.Sprintf("    %s owns %s of %s; to take them over, add %s", c.Owner, engine.Few(c.Fields), wording.Plural(c.Objects, "object"), c.Flag))
		if len(c.Autoscalers) > 0 {
			b.line(Plain, fmt.Sprintf("        %s will still set them back", engine.Few(c.Autoscalers)))
		}
	}
	b.WriteString("\n")
}
