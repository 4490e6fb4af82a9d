package human

import (
	"fmt"
	"strings"
	"text/tabwriter"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/apply"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/output"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/wording"
)

// outcomeOrder is the order in which results are counted: what was done first.
var outcomeOrder = []apply.Outcome{ //nolint:gochecknoglobals // an immutable table
	apply.Applied, apply.Planned, apply.Unchanged, apply.ServerKeepsValue, apply.Deleted, apply.Replaced,
	apply.Terminating, apply.Managed, apply.Conflicted, apply.Declined, apply.Drifted, apply.Failed, apply.NotTried,
}

// Writes prints a line for each object that was to be written, in kubectl apply's
// words, and ends with a table of the outcome of each rule on each object.
type Writes struct {
	output.Options
	printed   bool // there is something above
	counts    map[apply.Outcome]int
	rows      []outcomeRow
	conflicts output.Conflicts
}

// NewWrites returns a printer of what was written.
func NewWrites(o output.Options) *Writes {
	return &Writes{Options: o, counts: map[apply.Outcome]int{}}
}

// Print shows the line of an object that was to be written.
func (p *Writes) Print(e output.Event) error {
	w, ok := e.(output.Written)
	if !ok {
		return nil
	}
	p.counts[w.Outcome]++
	if p.DryRun == "" {
		p.rows = append(p.rows, rowsOf(w)...)
	}
	p.conflicts.Add(w)
	if w.Outcome == apply.NotTried {
		return nil // the count at the end says it all
	}
	return p.lines(w)
}

func (p *Writes) lines(w output.Written) error {
	text, paint := wording.ResourceName(w.Key)+" "+w.Verb(), Plain
	if w.Key.Namespace != "" {
		text += " in namespace " + w.Key.Namespace
	}
	if w.Err != nil {
		text, paint = text+": "+p.Masker.Text(w.Explanation()), Red
	}
	b := p.page()
	b.line(paint, text+p.suffix())
	if w.Err == nil {
		for _, n := range w.Notes() {
			b.line(Yellow, "    "+p.Masker.Text(n))
		}
	}
	return p.write(b)
}

func (p *Writes) page() *page { return &page{painter: Painter(p.Color)} }

// write sends out what belongs together at once.
func (p *Writes) write(b *page) error {
	p.printed = true
	_, err := p.Out.Write(b.Bytes())
	return err
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

// Close prints how often each outcome came.
func (p *Writes) Close() error {
	var parts []string
	total := 0
	for _, o := range outcomeOrder {
		if n := p.counts[o]; n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, o))
			total += n
		}
	}
	text := "Nothing to apply."
	if total > 0 {
		text = fmt.Sprintf("%s: %s%s.", wording.Plural(total, "object"), strings.Join(parts, ", "), p.suffix())
	}
	b := p.page()
	if p.printed {
		b.WriteString("\n")
	}
	if err := p.table(b); err != nil {
		return err
	}
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

// table writes the rows.
func (p *Writes) table(b *page) error {
	if len(p.rows) == 0 {
		return nil
	}
	w := tabwriter.NewWriter(b, 0, 0, 3, ' ', 0)
	fmt.Fprintln(w, "POLICY\tRULE\tKIND\tNAME\tNAMESPACE\tSTATUS\tMESSAGE")
	for _, r := range p.rows {
		kind := r.key.Kind
		if r.key.Subresource != "" {
			kind += "/" + r.key.Subresource
		}
		texts := []string{r.rule.Policy, r.rule.Rule, kind, r.key.Name, r.key.Namespace, string(r.status)}
		for i, text := range texts {
			if text == "" {
				texts[i] = "-"
			}
		}
		fmt.Fprintln(w, strings.TrimRight(cells(append(texts, p.Masker.Text(r.message))...), "\t"))
	}
	if err := w.Flush(); err != nil {
		return err
	}
	b.WriteString("\n")
	return nil
}

// owners writes who owns the fields that were not written, and what to type to take
// them over.
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
