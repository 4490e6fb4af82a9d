package human

import (
	"fmt"
	"slices"
	"strings"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/compare"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/output"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/wording"
)

// The formats of a Comparison besides diff.
const (
	comparisonSummary  = "summary"  // with the fields and the rules
	comparisonTable    = "table"    // a row for each object
	comparisonMarkdown = "markdown" // for a comment or a ticket
)

// Comparison prints the differences between two sets of policies: an overview, the objects, and at the end
// how the rules were exercised.
type Comparison struct {
	base
	style  string // a format of -o
	differ output.Differ
	rows   [][]string // of the table
	// problems of a page of Markdown
	problems Problems
}

// NewComparison returns a printer of a comparison.
func NewComparison(o output.Options, style string) *Comparison {
	o.Compares, o.Color = true, o.Color && style != comparisonMarkdown
	p := &Comparison{base: newBase(o), style: style, differ: NewDiffer(o)}
	p.spaced, p.markdown = style != comparisonSummary, style == comparisonMarkdown
	return p
}

// Print shows an object that differs, and the overview.
func (p *Comparison) Print(s output.Shown) error {
	switch e := s.Event().(type) {
	case output.Fleet:
		return p.fleet(e)
	case output.Compared:
		if e.Verdict == compare.Same {
			return nil
		}
		if p.style == comparisonTable {
			p.row(e)
			return nil
		}
		return p.object(e)
	case output.Problem:
		if p.markdown {
			p.problems.Add(e.Err.Error())
		}
	case output.Converted:
		return p.converted(e)
	case output.Conversion:
		b := p.page()
		b.WriteString("# " + e.Title + "\n" + p.problems.String())
		return p.write(b)
	case output.Comparison:
		return p.end(e.Summary)
	}
	return nil
}

// converted writes a section of a page of Markdown: a policy with its verdict and its conversion.
func (p *Comparison) converted(e output.Converted) error {
	b := p.page()
	b.WriteString("\n## " + codeSpan(e.Policy) + "\n\n- " + codeSpan(e.Origin) + ": " + ShortSpan(e.Verdict) +
		"\n")
	for _, note := range e.Notes {
		b.WriteString("- note: " + ShortSpan(note) + "\n")
	}
	for _, refused := range e.Refused {
		b.WriteString("- not converted: " + ShortSpan(refused) + "\n")
	}
	b.WriteString("\nOld:\n")
	fenced(b, "yaml", e.Old)
	if e.New != "" {
		b.WriteString("\nNew:\n")
		fenced(b, "yaml", e.New)
		b.WriteString("\nWhat was exercised:\n\n")
		p.exercised(b, e.Exercised)
	}
	return p.write(b)
}

// comparedMarker returns the first character of the line of an object.
func comparedMarker(v compare.Verdict) string {
	switch v {
	case compare.OnlyOldChanges:
		return "-"
	case compare.OnlyNewChanges:
		return "+"
	case compare.Differs:
		return "~"
	case compare.Same, compare.OnlyOldDenies, compare.OnlyNewDenies, compare.NotComparable:
	}
	return "!"
}

// object shows an object, or keeps it to show it with others.
func (p *Comparison) object(e output.Compared) error {
	notes := p.page()
	text := shown{marker: comparedMarker(e.Verdict), note: "  (" + wording.Verdict(e.Result) + ")"}
	if e.Variant != nil {
		text.note = ", a variant" + text.note
	}
	text.notes = text.note
	p.fieldsByRules(notes, e)
	p.troubles(notes, e)
	if err := p.manifest(notes, e); err != nil {
		return err
	}
	text.body, text.several = notes.Bytes(), notes.Bytes()
	words := append([]byte(text.note+"\n"), notes.Bytes()...)
	return p.show(&part{Change: *e.Difference}, words, func() (shown, error) {
		if p.style == comparisonSummary || len(e.Fields) == 0 {
			return text, nil
		}
		unified, err := p.differ.Unified(e.Difference, e.Alike)
		text.diff = p.unified(unified)
		return text, err
	})
}

// fieldsByRules lists the fields by the rules that wrote them.
func (p *Comparison) fieldsByRules(b *page, e output.Compared) {
	var order [][2]engine.RuleRef
	fields := map[[2]engine.RuleRef][]engine.FieldChange{}
	for i := range e.Fields {
		rules := e.Fields[i].Rules
		if fields[rules] == nil {
			order = append(order, rules)
		}
		fields[rules] = append(fields[rules], e.Fields[i].FieldChange)
	}
	for _, rules := range order {
		for _, side := range compare.Sides() {
			b.line(Plain, "  "+wording.SideRule(side, rules))
		}
		p.fields(b, fields[rules], "    ")
	}
}

// troubles lists the rules of each side that failed, denied the object or are not supported.
func (p *Comparison) troubles(b *page, e output.Compared) {
	for _, side := range compare.Sides() {
		for i := range e.Changes[side].Steps {
			if s := &e.Changes[side].Steps[i]; s.Outcome.Incomplete() {
				b.line(Plain, "  "+side.String()+": "+wording.Rule(s.Rule)+" "+p.outcome(s))
			}
		}
	}
}

// manifest writes a variant as a manifest, to keep as a test.
func (p *Comparison) manifest(b *page, e output.Compared) error {
	if e.Variant == nil {
		return nil
	}
	b.line(Plain, "  shown by "+wording.PluralNumber(e.Variant.Count, "variant")+" ("+
		engine.Few(e.Variant.Kinds)+"); the smallest object that shows it"+wording.Requested(e.Variant)+":")
	text, err := output.Manifests(e.Variant.Objects())
	if err != nil {
		return fmt.Errorf("%s: %w", e.Subject, err)
	}
	for line := range strings.Lines(text) {
		b.line(Plain, "    "+strings.TrimSuffix(line, "\n"))
	}
	return nil
}

func (p *Comparison) row(e output.Compared) {
	var rules [2][]string
	add := func(side compare.Side, r engine.RuleRef) {
		if name := r.String(); r != (engine.RuleRef{}) && !slices.Contains(rules[side], name) {
			rules[side] = append(rules[side], name)
		}
	}
	for _, side := range compare.Sides() {
		for i := range e.Fields {
			add(side, e.Fields[i].Rules[side])
		}
		for _, s := range e.Changes[side].Steps {
			if s.Outcome.Incomplete() {
				add(side, s.Rule)
			}
		}
	}
	row := []string{
		e.Subject.Namespace, wording.ResourceName(e.Subject), string(e.Verdict) + wording.Requests(e.Result),
		fmt.Sprint(len(e.Fields)),
		strings.Join(rules[compare.Old], ", "), strings.Join(rules[compare.New], ", "),
	}
	p.rows = append(p.rows, escapedCells(row, "<none>"))
}

// end prints the overview, the objects, and how the rules were exercised.
func (p *Comparison) end(s compare.Summary) error {
	b := p.page()
	if p.printed {
		b.WriteString("\n")
	}
	p.heading2(b, "Comparison")
	p.counts(b, s)
	b.WriteString(p.problems.String())
	if err := p.write(b); err != nil {
		return err
	}
	if err := p.Flush(); err != nil {
		return err
	}
	b = p.page()
	b.WriteString("\n")
	if len(p.rows) > 0 {
		b.table(append([][]string{{"NAMESPACE", "NAME", "VERDICT", "FIELDS", "OLD RULES", "NEW RULES"}}, p.rows...))
		b.WriteString("\n")
	}
	p.heading2(b, "What was exercised")
	p.exercised(b, s)
	b.WriteString("\n")
	p.counts(b, s)
	return p.write(b)
}

// heading2 writes a heading on a page of Markdown.
func (p *Comparison) heading2(b *page, text string) {
	if p.markdown {
		b.WriteString("## " + text + "\n\n")
	}
}

// counts writes the conclusion and the number of objects with each verdict.
func (p *Comparison) counts(b *page, s compare.Summary) {
	b.line(Bold, wording.Conclusion(&s))
	if s.Conclusion == compare.Nothing {
		return
	}
	if p.markdown {
		b.WriteString("\n")
	}
	for _, count := range wording.VerdictCounts(&s) {
		bullet := fmt.Sprintf("%8s  ", wording.Number(count.N))
		if p.markdown {
			bullet = "- " + wording.Number(count.N) + " "
		}
		b.line(Plain, bullet+count.Text)
	}
	if s.Problems > 0 {
		if p.markdown {
			b.WriteString("\n") // otherwise it belongs to the list
		}
		b.line(Red, "Not all could be compared: "+wording.Plural(s.Problems, "error")+
			" in policies or in what was read.")
	}
}

// exercised writes the table of the rules, and what is missing to exercise the others.
func (p *Comparison) exercised(b *page, s compare.Summary) {
	remarks := p.remarks(s)
	if !p.markdown {
		b.table(exercises(s, wording.Rule))
		for _, line := range remarks {
			b.line(Yellow, line)
		}
		return
	}
	// the side and the rule
	markdownTable(b, 2, exercises(s, func(r engine.RuleRef) string { return cell(wording.Rule(r)) }))
	if len(remarks) > 0 {
		lines := p.page()
		for _, line := range remarks {
			lines.line(Plain, line)
		}
		fenced(b, "", lines.String())
	}
}

// exercises returns the rows of the table, one for each rule whatever the number of its parameters.
func exercises(s compare.Summary, name func(engine.RuleRef) string) [][]string {
	rows := [][]string{{"SIDE", "POLICY/RULE", "MATCHED", "HELD BACK", "CHANGED"}}
	if s.Variants.Compared > 0 {
		rows[0] = append(rows[0], "VARIANTS CHANGED")
	}
	for _, side := range compare.Sides() {
		var rules []engine.RuleRef
		of := map[engine.RuleRef][]compare.Exercise{}
		for _, e := range s.Rules[side] {
			open := e.Rule.WithoutParameter()
			if of[open] == nil {
				rules = append(rules, open)
			}
			of[open] = append(of[open], e)
		}
		for _, rule := range rules {
			text, counts := name(of[rule][0].Rule), [4]int{}
			if n := len(of[rule]); n > 1 {
				text = name(rule) + " (" + wording.Plural(n, "parameter") + ")"
			}
			for _, e := range of[rule] {
				for i, n := range []int{e.Matched(), e.Outcomes[engine.Skipped], e.Outcomes[engine.Changed], e.Variants} {
					counts[i] += n
				}
			}
			row := []string{side.String(), text}
			for i := range len(rows[0]) - len(row) {
				row = append(row, fmt.Sprint(counts[i]))
			}
			rows = append(rows, row)
		}
	}
	return rows
}

// remarks say what held rules back, and what is missing to exercise them.
func (p *Comparison) remarks(s compare.Summary) []string {
	var out []string
	for _, side := range compare.Sides() {
		for _, e := range s.Rules[side] {
			if e.Exercised() {
				continue
			}
			out = append(out, "not exercised: "+side.String()+": "+wording.Rule(e.Rule)+": missing is "+e.Missing)
			for _, reason := range e.Reasons() {
				out = append(out, fmt.Sprintf("    held back on %s: %s", wording.Plural(e.HeldBack[reason], "object"),
					reason))
			}
		}
	}
	return out
}
