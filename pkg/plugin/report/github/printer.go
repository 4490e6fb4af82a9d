package github

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/render"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/report"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/secret"
)

// The bounds of what is annotated.
const (
	maxAnnotations = 10
	namesTold      = 3
	maxProblems    = maxAnnotations
)

// New returns a printer that writes the annotations when it is closed. Summary
// takes what is written for the summary of the step; nil where there is none.
func New(o render.Options, summary render.Printer) *Printer {
	return &Printer{out: o.Out, masker: report.Masker(o), summary: summary, index: map[engine.RuleRef]*rule{}}
}

// Printer writes the report.
type Printer struct {
	out     io.Writer
	masker  *secret.Masker
	summary render.Printer

	rules    []*rule // in the order in which they were met
	index    map[engine.RuleRef]*rule
	problems []report.Problem
	untold   int
}

// rule is what an annotation tells of a rule.
type rule struct {
	name            string
	place           report.Place
	changed, broken tally
	reason          string // the first
}

// tally counts objects and names the first of them.
type tally struct {
	n     int
	names []string
}

func (t *tally) add(name string) {
	t.n++
	if len(t.names) < namesTold {
		t.names = append(t.names, name)
	}
}

func (t *tally) String() string {
	text := strings.Join(t.names, ", ")
	if rest := t.n - len(t.names); rest > 0 {
		text += fmt.Sprintf(" and %d more", rest)
	}
	return text
}

// Print counts what the rules would change on an object.
func (p *Printer) Print(c engine.Change) error {
	object := report.Describe(&c, p.masker)
	for i := range object.Findings {
		f := &object.Findings[i]
		switch f.Verdict {
		case report.Fail:
			p.rule(f).changed.add(object.Name)
		case report.Error:
			r := p.rule(f)
			if r.broken.n == 0 {
				r.reason = f.Message()
			}
			r.broken.add(object.Name)
		case report.Pass, report.Skip:
		}
	}
	if p.summary == nil {
		return nil
	}
	return p.summary.Print(c)
}

func (p *Printer) rule(f *report.Finding) *rule {
	r := p.index[f.Rule]
	if r == nil {
		r = &rule{name: f.Name, place: report.PlaceOf(f.Rule.Origin)}
		p.index[f.Rule] = r
		p.rules = append(p.rules, r)
	}
	return r
}

// Trouble adds an annotation.
func (p *Printer) Trouble(err error) error {
	if len(p.problems) < maxProblems {
		p.problems = append(p.problems, report.ProblemOf(err, p.masker))
	} else {
		p.untold++
	}
	if t, ok := p.summary.(report.Troubled); ok {
		return t.Trouble(err)
	}
	return nil
}

// Close writes the annotations, errors first, and ends the summary.
func (p *Printer) Close(s engine.Summary) error {
	all := p.annotations()
	shown := all
	if len(all)+p.untold > maxAnnotations {
		shown = slices.Clone(all[:maxAnnotations-1])
		shown = append(shown, annotation{
			level: all[maxAnnotations-1].level, title: "kubectl mutate",
			text: fmt.Sprintf("%d more annotations are left out. %s", len(all)+p.untold-len(shown), render.Counts(s)),
		})
	}
	for _, a := range shown {
		if _, err := io.WriteString(p.out, a.command()); err != nil {
			return err
		}
	}
	if p.summary == nil {
		return nil
	}
	return p.summary.Close(s)
}

// annotations are all that there is to tell, what matters most first.
func (p *Printer) annotations() []annotation {
	var out []annotation
	for _, problem := range p.problems {
		out = append(out, annotation{level: "error", title: problem.Where, text: problem.Text, place: report.PlaceOf(problem.Origin)})
	}
	for _, r := range p.rules {
		if r.broken.n > 0 {
			out = append(out, annotation{
				level: "error", title: r.name, place: r.place,
				text: fmt.Sprintf("failed, denied or not supported on %s: %s. The first %s", objects(r.broken.n), r.broken.String(), r.reason),
			})
		}
	}
	slices.SortStableFunc(p.rules, func(a, b *rule) int { return b.changed.n - a.changed.n })
	for _, r := range p.rules {
		if r.changed.n > 0 {
			out = append(out, annotation{
				level: "warning", title: r.name, place: r.place,
				text: fmt.Sprintf("would change %s: %s", objects(r.changed.n), r.changed.String()),
			})
		}
	}
	return out
}

func objects(n int) string {
	if n == 1 {
		return "1 object"
	}
	return fmt.Sprintf("%d objects", n)
}
