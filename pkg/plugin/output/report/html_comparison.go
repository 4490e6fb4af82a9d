package report

import (
	"strings"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/compare"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/output"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/redact"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/wording"
)

// maxDifferences is the maximum number of differences of each verdict on the page.
const maxDifferences = 200

// section is the place of a difference on the page.
type section struct {
	variant bool
	verdict compare.Verdict
}

// compared adds an object or a variant that differs.
func (p *HTML) compared(e output.Compared) error {
	if e.Verdict == compare.Same {
		return nil
	}
	d := difference(e)
	m := memberOf(e.Difference, d.Level == failed)
	if e.Variant != nil {
		manifest, err := output.Manifests(e.Variant.Objects())
		if err != nil {
			return err
		}
		d.Variant = line("Shown by "+wording.PluralNumber(e.Variant.Count, "variant")+" ("+
			engine.Few(e.Variant.Kinds)+"). The smallest object that shows it"+wording.Requested(e.Variant)+":",
			textLength)
		for text := range strings.Lines(cutLines(manifest, staticDiff)) {
			d.Manifest += redact.EscapeLine(strings.TrimSuffix(text, "\n")) + "\n"
		}
	}
	shape, err := d.shape()
	if err != nil {
		return err
	}
	if known := p.known[shape]; known != nil {
		known.join(m, d.Rules)
		return nil
	}
	at := section{e.Variant != nil, e.Verdict}
	if len(p.differences[at]) == maxDifferences {
		p.left++
		return nil
	}
	if len(e.Fields) > 0 {
		text, err := p.differ.Unified(e.Difference, e.Alike)
		if err != nil {
			return err
		}
		d.diff = cutLines(diffText(text), staticDiff)
	}
	d.join(m, d.Rules)
	p.known[shape] = d
	p.differences[at] = append(p.differences[at], d)
	return nil
}

// difference describes what the sides do differently, without the diff.
func difference(e output.Compared) *change {
	out := &change{
		Level: warned, Kind: line(wording.Kind(e.Subject), nameLength), Fields: len(e.Fields),
		Verdict:    wording.Verdict(e.Result),
		namespaces: map[string]bool{}, values: values{},
	}
	if e.Verdict == compare.NotComparable {
		out.Level = failed
	}
	out.Rules = append(ruledFields(e), troubles(e)...)
	return out
}

// ruledFields returns the fields by the rules of both sides that wrote them.
func ruledFields(e output.Compared) []rule {
	var out []rule
	places := map[[2]engine.RuleRef]int{}
	for i := range e.Fields {
		f := &e.Fields[i]
		at, ok := places[f.Rules]
		if !ok {
			at = len(out)
			places[f.Rules] = at
			out = append(out, rule{Name: line(wording.SideRule(compare.Old, f.Rules)+"; "+
				wording.SideRule(compare.New, f.Rules), textLength)})
		}
		if len(out[at].Fields) == fieldsListed {
			out[at].More++
			continue
		}
		of := FieldOf(&f.FieldChange)
		of.Path = Cut(of.Path, textLength)
		out[at].Fields = append(out[at].Fields, field{Field: of})
	}
	return out
}

// fieldsListed is the maximum number of fields of two rules.
const fieldsListed = 50

// troubles returns the rules of each side that failed, denied the object or are not supported.
func troubles(e output.Compared) []rule {
	var out []rule
	for _, side := range compare.Sides() {
		for _, s := range e.Changes[side].Steps {
			if !s.Outcome.Incomplete() {
				continue
			}
			r := rule{
				Name: line(side.String()+": "+wording.Rule(s.Rule), nameLength), Origin: line(s.Rule.Origin, nameLength),
				Outcome: string(s.Outcome), Broken: true,
			}
			if s.Err != nil {
				r.Reasons = []string{line(wording.WithoutName(s.Err.Error(), e.Subject), textLength)}
			}
			out = append(out, r)
		}
	}
	return out
}

// comparisonPage is the data of the template.
type comparisonPage struct {
	frame
	Tiles       []tile
	Counts      []wording.Count
	Summary     *compare.Summary
	Differences []row
	Left        int
	Conversions []output.Converted
}

// writeComparison writes the page of a comparison or a conversion, which has no script.
func (p *HTML) writeComparison() error {
	t, err := parsed(comparisonSource)
	if err != nil {
		return err
	}
	if p.options.Converts {
		return t.ExecuteTemplate(p.options.Out, "conversion",
			&comparisonPage{frame: p.frame, Conversions: p.conversions})
	}
	s := &p.comparison
	p.frame.Title = wording.Conclusion(s)
	out := &comparisonPage{
		frame: p.frame, Tiles: comparedTiles(s), Counts: wording.VerdictCounts(s), Summary: s, Left: p.left,
	}
	for _, variant := range []bool{false, true} {
		for _, verdict := range compare.Verdicts() {
			for _, d := range p.differences[section{variant, verdict}] {
				d.finish()
				out.Differences = append(out.Differences, rowOf(d))
			}
		}
	}
	return t.ExecuteTemplate(p.options.Out, "comparison", out)
}

func comparedTiles(s *compare.Summary) []tile {
	out := []tile{{"objects compared", s.Objects, ""}, {"do not come out the same", s.Differing(), "warned"}}
	if n := s.Verdicts[compare.NotComparable]; n > 0 {
		out = append(out, tile{"not comparable", n, "failed"})
	}
	if v := s.Variants; v.Compared > 0 {
		out = append(out, tile{"variants compared", v.Compared, ""},
			tile{"of them do not come out the same", v.Differ, "warned"})
	}
	out = append(out, tile{"rules not exercised", s.Unexercised(), "warned"})
	for i := range out {
		if out[i].N == 0 {
			out[i].Alarm = ""
		}
	}
	return out
}
