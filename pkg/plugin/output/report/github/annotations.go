package github

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/output/report"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/wording"
)

// The bounds of what is annotated.
const (
	maxAnnotations = 10
	namesListed    = 3
	maxProblems    = maxAnnotations
)

// annotations are collected by rule and problem.
type annotations struct {
	out   io.Writer
	words words

	rules    []*rule // in the order in which they were met
	index    map[engine.RuleRef]*rule
	problems []report.Problem
	leftOut  int
}

// words stand before the number of objects of a rule.
type words struct {
	failed    string         // of those in error
	annotated report.Verdict // the other verdict that is annotated
	warned    string         // of those
}

// rule is what an annotation says about a rule.
type rule struct {
	name           string
	place          report.Place
	warned, failed tally
	reason         string // the first
}

// tally counts objects and names the first of them.
type tally struct {
	n     int
	names []string
}

func (t *tally) add(name string) {
	t.n++
	if len(t.names) < namesListed {
		t.names = append(t.names, name)
	}
}

// String is "2 objects: ConfigMap shop/a, ConfigMap shop/b".
func (t *tally) String() string {
	text := wording.Plural(t.n, "object") + ": " + strings.Join(t.names, ", ")
	if rest := t.n - len(t.names); rest > 0 {
		text += fmt.Sprintf(" and %d more", rest)
	}
	return text
}

// count counts the results of the rules on an object.
func (a *annotations) count(object *report.Object) {
	for i := range object.Findings {
		f := &object.Findings[i]
		switch f.Verdict {
		case report.Error:
			r := a.rule(f)
			if r.failed.n == 0 {
				r.reason = f.Message
			}
			r.failed.add(object.Name)
		case a.words.annotated:
			a.rule(f).warned.add(object.Name)
		case report.Pass, report.Fail, report.Skip:
		}
	}
}

func (a *annotations) rule(f *report.Finding) *rule {
	r := a.index[f.Rule]
	if r == nil {
		r = &rule{name: f.Name, place: f.Place}
		a.index[f.Rule] = r
		a.rules = append(a.rules, r)
	}
	return r
}

// write writes the annotations, errors first. The last one sums up those
// that are too many, and ends with counts.
func (a *annotations) write(counts string) error {
	all := a.all()
	shown := all
	if len(all)+a.leftOut > maxAnnotations {
		shown = slices.Clone(all[:maxAnnotations-1])
		shown = append(shown, annotation{
			level: all[maxAnnotations-1].level, title: "kubectl mutate",
			text: fmt.Sprintf("%d more annotations are left out. %s", len(all)+a.leftOut-len(shown), counts),
		})
	}
	for _, at := range shown {
		if _, err := io.WriteString(a.out, at.command()); err != nil {
			return err
		}
	}
	return nil
}

// all returns all annotations, the most important first.
func (a *annotations) all() []annotation {
	var out []annotation
	for _, problem := range a.problems {
		out = append(out, annotation{level: "error", title: problem.Where, text: problem.Text, place: problem.Place})
	}
	for _, r := range a.rules {
		if r.failed.n > 0 {
			out = append(out, annotation{
				level: "error", title: r.name, place: r.place,
				text: fmt.Sprintf("%s %s. The first %s", a.words.failed, r.failed.String(), r.reason),
			})
		}
	}
	slices.SortStableFunc(a.rules, func(a, b *rule) int { return b.warned.n - a.warned.n })
	for _, r := range a.rules {
		if r.warned.n > 0 {
			out = append(out, annotation{level: "warning", title: r.name, place: r.place, text: a.words.warned + " " + r.warned.String()})
		}
	}
	return out
}
