package human

import (
	"fmt"
	"strings"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/output"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/wording"
)

// Tests prints the results of tests that did not pass, each with its place, the unexpected fields and the
// reason; and the counts. As a table it has a row for each result.
type Tests struct {
	base
	foreign  wording.Reasons
	rows     [][]string // of a table
	problems Problems
}

// NewTests returns a printer of tests in a format of -o: diff, table or markdown.
func NewTests(o output.Options, style string) *Tests {
	p := &Tests{base: newBase(o)}
	switch style {
	case "table":
		p.rows = [][]string{{"TEST", "RULE", "OBJECT", "WANTED", "GOT", "RESULT"}}
	case "markdown":
		p.markdown, p.Color = true, false
	}
	return p
}

// Print shows a result that did not pass, or the end.
func (p *Tests) Print(s output.Shown) error {
	switch e := s.Event().(type) {
	case output.Problem:
		p.problems.Add(e.Err.Error())
	case output.Tested:
		switch {
		case p.rows != nil:
			object := ""
			if e.Object != (engine.ObjectKey{}) {
				object = e.Object.String()
			}
			p.rows = append(p.rows,
				escapedCells([]string{e.Origin, wording.Rule(e.Rule), object, e.Wanted, e.Got, string(e.Verdict)}, "-"))
			return nil
		case e.Verdict == output.TestPassed:
			return nil
		case e.Foreign:
			p.foreign.Add(engine.ObjectKey{Name: e.Origin}, e.Text)
			return nil
		}
		return p.result(&e)
	case output.Tests:
		return p.end(&e)
	}
	return nil
}

func (p *Tests) result(t *output.Tested) error {
	b := p.page()
	color, word := Red, "FAIL"
	switch t.Verdict {
	case output.NotTested:
		color, word = Yellow, "NOT TESTED"
	case output.NotRun:
		word = "NOT RUN"
	case output.TestFailed, output.TestPassed:
	}
	if p.markdown {
		b.WriteString("\n- **" + word + "** " + codeSpan(t.Origin) + ": " + codeSpan(t.Title()) + ": " +
			ShortSpan(t.Text) + "\n")
	} else {
		b.paint(color, word)
		b.line(Plain, " "+t.Origin+": "+t.Title()+": "+t.Text)
	}
	details := p.page()
	if t.Reason != "" {
		details.line(Plain, "    because "+t.Reason)
	}
	lines, places := t.Fields()
	if len(lines) > 0 {
		details.line(Plain, "    not as wanted at "+t.Places[0]+": "+wording.Plural(len(lines), "field"))
	}
	for i := range lines {
		details.line(Plain, "    "+places[i]+": "+lines[i])
	}
	if t.Note != "" {
		details.line(Plain, "    note: "+t.Note)
	}
	if p.markdown && details.Len() > 0 {
		fenced(b, "", details.String())
	} else {
		b.Write(details.Bytes())
	}
	return p.write(b)
}

func (p *Tests) end(t *output.Tests) error {
	b, others := p.page(), p.page()
	for _, reason := range p.foreign.All() {
		others.line(Plain, fmt.Sprintf("not tested here: %s: %s (%s)", wording.Plural(reason.Count, "result"),
			reason.Text, engine.FewOf(namesOf(reason.First), reason.Count)))
	}
	total := 0
	var counts []string
	for _, v := range []output.TestVerdict{
		output.TestPassed, output.TestFailed, output.NotRun,
		output.NotTested,
	} {
		n := t.Results[v]
		if total += n; n > 0 {
			counts = append(counts, wording.Number(n)+" "+string(v))
		}
	}
	text := fmt.Sprintf("%s, %s", wording.Plural(t.Tests, "test"), wording.Plural(total, "result"))
	if len(counts) > 0 {
		text += ": " + strings.Join(counts, ", ")
	}
	text += "."
	if t.Problems > 0 {
		text += " " + wording.Plural(t.Problems, "error") + " in tests, listed above."
	}
	color := Green
	if t.Results[output.TestPassed] == 0 ||
		t.Results[output.TestFailed]+t.Results[output.NotRun]+t.Problems > 0 {
		color = Red
	}
	if p.markdown {
		b.WriteString("# " + text + "\n" + p.problems.String())
		if others.Len() > 0 {
			fenced(b, "", others.String())
		}
		return p.write(b)
	}
	b.table(p.rows)
	b.Write(others.Bytes())
	b.line(color, text)
	return p.write(b)
}

func namesOf(keys []engine.ObjectKey) (out []string) {
	for _, k := range keys {
		out = append(out, k.Name)
	}
	return out
}
