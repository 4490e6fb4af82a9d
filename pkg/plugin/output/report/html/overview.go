package html

import (
	"cmp"
	"slices"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/evaluation"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/output/human"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/output/report"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/wording"
)

// overview counts objects for the charts.
type overview struct {
	policies, namespaces counts
	skipped              human.Counter
}

// counts are those of a chart, by name.
type counts struct{ bars map[string]*bar }

// bar is a row of a chart.
type bar struct {
	Name    string
	Value   string // by which the script filters
	Changed int    // objects that would change
	Broken  int    // objects of which not everything is known, or that would be refused
	Width   int    // of Changed, out of 100
	Begin   int    // of Broken, which lies over Changed where objects are both
	Hollow  int    // of Broken
	both    int
}

// objects counts those of the bar, each once.
func (b *bar) objects() int { return b.Changed + b.Broken - b.both }

func (c *counts) of(name string) *bar {
	if c.bars == nil {
		c.bars = map[string]*bar{}
	}
	at := c.bars[name]
	if at == nil {
		at = &bar{Name: name, Value: name}
		c.bars[name] = at
	}
	return at
}

// clusterScoped stands in the chart for the objects that have no namespace.
const clusterScoped = "(cluster-scoped)"

func (o *overview) add(c *engine.Change, findings []report.Finding) {
	o.addReasons(c)
	if c.Changed() || c.Incomplete() {
		o.addTo(&o.namespaces, cmp.Or(memberOf(c).Namespace, clusterScoped), c.Changed(), c.Incomplete())
	}
	type outcome struct{ changed, broken bool }
	policies := map[string]outcome{}
	for i := range findings {
		f := &findings[i]
		name := policyName(f.Rule)
		was := policies[name]
		policies[name] = outcome{changed: was.changed || f.Changed > 0, broken: was.broken || f.Verdict == report.Error}
	}
	for name, came := range policies { // sums, in whatever order
		o.addTo(&o.policies, name, came.changed, came.broken)
	}
}

func (o *overview) addTo(c *counts, name string, changed, broken bool) {
	at := c.of(name)
	if changed {
		at.Changed++
	}
	if broken {
		at.Broken++
	}
	if changed && broken {
		at.both++
	}
}

// addReasons counts why rules were skipped.
func (o *overview) addReasons(c *engine.Change) {
	for i := range c.Steps {
		s := &c.Steps[i]
		if s.Outcome != engine.Skipped || s.Err == nil {
			continue
		}
		o.skipped.Add(wording.Brief(s.Err))
	}
}

// barsShown bounds a chart; the filters know all names.
const barsShown = 12

// chart is what the page shows of counts.
type chart struct {
	Title, Head, Filter string
	Bars                []*bar
	Broken              bool // there is a bar with a hollow part
	Rest                int  // names that are left out
	All                 []string
}

// chartOf draws those with most objects first.
func (c *counts) chartOf(title, head, filter string) chart {
	out := chart{Title: title, Head: head, Filter: filter}
	for _, b := range c.bars {
		out.Bars = append(out.Bars, b)
		out.All = append(out.All, b.Value)
	}
	slices.Sort(out.All)
	slices.SortFunc(out.Bars, func(a, b *bar) int {
		return cmp.Or(cmp.Compare(b.objects(), a.objects()), cmp.Compare(a.Name, b.Name))
	})
	if rest := len(out.Bars) - barsShown; rest > 0 {
		out.Bars, out.Rest = out.Bars[:barsShown], rest
	}
	most := 1
	for _, b := range out.Bars {
		most = max(most, b.objects())
	}
	for _, b := range out.Bars {
		b.Width, b.Begin, b.Hollow = share(b.Changed, most), share(b.Changed-b.both, most), share(b.Broken, most)
		out.Broken = out.Broken || b.Broken > 0
	}
	return out
}

// share is n out of most as a percentage that is not 0 where n is not.
func share(n, most int) int {
	if n == 0 {
		return 0
	}
	return max(1, n*100/most)
}

// ruleTable counts the outcomes of each rule.
type ruleTable struct {
	Outcomes []engine.Outcome
	Rows     []ruleRow
	Rest     int // rules that matched no object
}

type ruleRow struct {
	Name, Origin, Severity string
	Counts                 []int
}

func (p *Printer) rules(s *evaluation.Summary) ruleTable {
	out := ruleTable{Outcomes: human.Outcomes(*s)}
	for i := range s.Rules {
		r := &s.Rules[i]
		row := ruleRow{Name: line(wording.Rule(r.Rule), nameLength), Origin: line(r.Rule.Origin, nameLength), Severity: r.Rule.Severity}
		for _, o := range out.Outcomes {
			row.Counts = append(row.Counts, r.Outcomes[o])
		}
		if !r.MetNothing() || p.options.Explain {
			out.Rows = append(out.Rows, row)
		} else {
			out.Rest++
		}
	}
	return out
}
