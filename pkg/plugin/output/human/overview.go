package human

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/output"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/wording"
)

// The bounds of an overview, which fits on a screen.
const (
	crowd          = 24 // different changes that are listed one by one
	changesListed  = 5
	failuresListed = 10 // different ones, with their objects
	rulesListed    = 20
	lineListed     = 87 // bytes of a reason, behind its count and before "..."
)

// overview counts changes by field and rule. It takes the place of the changes when there are more
// different ones than a screen shows.
type overview struct {
	counts  Counter
	crowded bool
	failed  int // different failures that are listed
}

// newOverview returns nil where each change is asked for.
func newOverview(o output.Options) *overview {
	if o.GroupBy != output.ByPatch || o.Expand || o.Explain {
		return nil
	}
	return &overview{}
}

// takesOver reports whether there are so many different changes that they are not listed.
func (v *overview) takesOver() bool { return v != nil && v.crowded }

// element finds the elements of lists in a path.
var element = regexp.MustCompile(`\[\d+\]`)

// reason is what the overview counts of why a rule was skipped: the elements of a list as one.
func (v *overview) reason(text string) string {
	const condition = "condition on "
	before, after, found := strings.Cut(text, condition)
	if v == nil || !found {
		return text
	}
	return before + condition + element.ReplaceAllString(after, "[*]")
}

// remark is what the overview counts of an impact, whose fields differ from object to object; empty where another line
// tells it.
func (v *overview) remark(m *engine.Impact, kind string) string {
	switch {
	case v == nil:
	case m.Code == engine.ImpactRollout:
		return ""
	case m.Code == engine.ImpactImmutable:
		return "immutable: the server will refuse them: fields that may not change on a " + kind
	}
	return string(m.Code) + ": " + m.Alike()
}

// add counts the fields of an object, each with its rule; those of several elements of a list once.
func (v *overview) add(c *engine.Change) {
	seen := map[string]bool{}
	for i := range c.Fields {
		f := &c.Fields[i]
		if f.Records() {
			continue
		}
		text := fieldMarker(f.Kind) + " " + engine.PathPattern(f.Path) + "\t" + f.Rule.String()
		if !seen[text] {
			seen[text] = true
			v.counts.Add(text)
		}
	}
}

// leavesOut reports whether a group is not shown, of which there are so many others.
func (v *overview) leavesOut(t Text) bool {
	if !v.crowded {
		return false
	}
	if t.Marker == failure {
		v.failed++
	}
	return t.Marker != failure || v.failed > failuresListed
}

// write lists the most frequent changes.
func (v *overview) write(b *page) {
	top, _ := v.counts.Top(changesListed)
	if len(top) == 0 {
		return
	}
	b.WriteString("Most frequent changes:\n")
	var rows [][]string
	for _, c := range top {
		field, rule, _ := strings.Cut(c.Text, "\t")
		rows = append(rows, []string{fmt.Sprintf("%8d  %s", c.N, middle(field, cellPath)), middle(rule, cellRule)})
	}
	b.table(rows)
	b.WriteString("\n")
}

// hint says how to see what is not listed.
func (v *overview) hint() string {
	text := "To see each change: -o diff, or --expand"
	if n := v.failed - failuresListed; n > 0 {
		text += "; " + wording.Plural(n, "failure") + " of other objects among them"
	}
	return text
}
