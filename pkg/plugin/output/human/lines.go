package human

import (
	"bytes"
	"errors"
	"fmt"
	"strings"

	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/apply"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/apply/request"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/redact"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/wording"
)

// outcomeOrder is how results are counted: what was done first.
var outcomeOrder = []apply.Outcome{ //nolint:gochecknoglobals // an immutable table
	apply.Applied, apply.Planned, apply.Unchanged, apply.ServerKeepsValue, apply.Deleted, apply.Replaced,
	apply.Terminating, apply.Managed, apply.Conflicted, apply.Declined, apply.Drifted, apply.Failed, apply.NotTried,
}

// ResultLines prints a line for each object, in kubectl apply's words, and ends
// with a table of what came of each rule on each object.
type ResultLines struct {
	options   ResultOptions
	printed   bool // there is something above
	counts    map[apply.Outcome]int
	rows      []outcomeRow
	conflicts conflicts
}

// NewResultLines returns a printer of lines.
func NewResultLines(o ResultOptions) *ResultLines {
	return &ResultLines{options: o, counts: map[apply.Outcome]int{}}
}

// Print prints the line of one object.
func (p *ResultLines) Print(r apply.Result) error {
	p.options.learn(&r)
	p.counts[r.Outcome]++
	if p.options.DryRun == "" {
		p.rows = append(p.rows, rowsOf(&r, p.options.Masker)...)
	}
	p.conflicts.add(&r)
	if r.Outcome == apply.NotTried {
		return nil // the count at the end says it all
	}
	return p.lines(&r)
}

func (p *ResultLines) lines(r *apply.Result) error {
	text, paint := redact.EscapeLine(wording.ResourceName(r.Key))+" "+outcomeText(r), Plain
	if r.Key.Namespace != "" {
		text += " in namespace " + redact.EscapeLine(r.Key.Namespace)
	}
	if r.Err != nil {
		text, paint = text+": "+p.text(explanation(r)), Red
	}
	var b bytes.Buffer
	b.WriteString(p.options.Color.Paint(paint, text+p.suffix()) + "\n")
	if r.Err == nil {
		for _, n := range ResultNotes(r) {
			b.WriteString(p.options.Color.Paint(Yellow, "    "+p.text(n)) + "\n")
		}
	}
	return p.write(&b)
}

func (p *ResultLines) text(s string) string { return redact.EscapeLine(p.options.Masker.Text(s)) }

// write sends out what belongs together at once.
func (p *ResultLines) write(b *bytes.Buffer) error {
	p.printed = true
	_, err := p.options.Out.Write(b.Bytes())
	return err
}

// explanation is why an object is not as wanted, and what to change instead.
func explanation(r *apply.Result) string {
	text := reasonOf(r.Err).Error()
	if r.Instead != "" {
		text += "; change " + r.Instead + " instead"
	}
	return text
}

// reasonOf is the error less the name of the object, which stands beside it.
func reasonOf(err error) error {
	var o *apply.ObjectError
	if errors.As(err, &o) {
		return o.Err
	}
	return err
}

// ResultNotes are what a user should know about a write that went well: whose fields
// it took, unless nobody comes back for them, and where the server made something
// else of it.
func ResultNotes(r *apply.Result) []string {
	var out []string
	for _, t := range r.Takeovers {
		if t.Verdict != request.Silent {
			out = append(out, "was set by "+t.String())
		}
	}
	if set := r.Difference.Of(request.Overridden); len(set) > 0 {
		out = append(out, "the server set another value: "+strings.Join(set.Paths(), ", "))
	}
	if set := r.Difference.Of(request.Defaulted); len(set) > 0 {
		out = append(out, "the server also sets "+few(set.Paths()))
	}
	if r.Unverified != nil {
		out = append(out, "not verified by a dry run: "+reasonOf(r.Unverified).Error())
	}
	if r.Found {
		out = append(out, "the answer to the write was lost; the object was found as it was to become")
	}
	if len(r.Drift) > 0 {
		out = append(out, "the write answered other values than its dry run: "+paths(r.Drift))
	}
	if r.OwnersUnknown {
		out = append(out, "the object does not record who set its fields, so conflicts could not be checked")
	}
	return out
}

// few names the first of many fields.
func few(names []string) string {
	const most = 3
	if len(names) <= most {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), len(names)-most)
}

func paths(list []fieldpath.Path) string {
	out := make([]string, len(list))
	for i, p := range list {
		out[i] = engine.PathString(p)
	}
	return strings.Join(out, ", ")
}

// outcomeText is what was done, in the words of kubectl where it has one.
func outcomeText(r *apply.Result) string {
	switch r.Outcome {
	case apply.Applied, apply.Planned:
		if r.Method == request.JSONPatch {
			return "patched"
		}
		return "serverside-applied"
	case apply.Deleted:
		return "skipped (deleted meanwhile)"
	case apply.Replaced:
		return "skipped (replaced meanwhile)"
	case apply.Terminating:
		return "skipped (terminating)"
	case apply.Managed:
		return "left alone"
	case apply.ServerKeepsValue:
		return "unchanged (the server keeps its value)"
	}
	return string(r.Outcome)
}

// suffix tells a dry run, as kubectl does.
func (p *ResultLines) suffix() string {
	switch p.options.DryRun {
	case "client":
		return " (dry run)"
	case "server":
		return " (server dry run)"
	}
	return ""
}

// Close prints how often each outcome came.
func (p *ResultLines) Close() error {
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
	var b bytes.Buffer
	if p.printed {
		b.WriteString("\n")
	}
	if err := writeRows(&b, p.rows); err != nil {
		return err
	}
	p.conflicts.write(&b)
	b.WriteString(p.options.Color.Paint(Bold, text) + "\n")
	return p.write(&b)
}
