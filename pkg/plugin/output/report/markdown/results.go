package markdown

import (
	"bytes"
	"fmt"
	"io"
	"strings"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/output"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/output/report"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/redact"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/wording"
)

// ResultsMarker begins the page of a run that writes.
const ResultsMarker = "<!-- kubectl-mutate results -->"

// NewResults returns a report that is no longer than limit bytes; 0 stands for
// MaxBytes. Of the objects it holds no more than that.
func NewResults(o output.Options, limit int) *Results {
	if limit == 0 {
		limit = MaxBytes
	}
	p := &Results{out: o.Out, masker: report.Masker(o), limit: limit}
	if o.DryRun != "" {
		p.suffix = " (" + o.DryRun + " dry run)"
	}
	return p
}

// Results writes what a run wrote: first how often each outcome came, then the
// objects that are not as wanted, then the others.
type Results struct {
	out      io.Writer
	masker   *redact.Masker
	limit    int
	suffix   string // of the heading
	problems problems

	failed, left, reached section
}

// section is a list of objects of which the same is to be thought.
type section struct {
	title    string
	outcomes []outcomeCount // in the order in which they were met
	lines    []string       // of the first objects
	bytes    int
	objects  int
}

type outcomeCount struct {
	outcome string
	objects int
}

func (s *section) count(outcome string) {
	s.objects++
	for i := range s.outcomes {
		if s.outcomes[i].outcome == outcome {
			s.outcomes[i].objects++
			return
		}
	}
	s.outcomes = append(s.outcomes, outcomeCount{outcome, 1})
}

// Add takes what came of one object.
func (p *Results) Add(object report.Object) error {
	if len(object.Findings) == 0 {
		return nil
	}
	worst := &object.Findings[0]
	for i := range object.Findings {
		if f := &object.Findings[i]; f.Verdict == report.Error {
			worst = f
			break
		}
	}
	s := p.section(worst.Verdict)
	s.count(worst.Outcome)
	text := listed(&object)
	if s.bytes += len(text); s.bytes <= p.limit {
		s.lines = append(s.lines, text)
	}
	return nil
}

// rulesNamed bounds the rules of one object.
const rulesNamed = 3

// listed is an item of the list of objects: what came of it, and of which rules.
// Rules of which the same came are named together.
func listed(object *report.Object) string {
	var messages, warnings []string
	rules := map[string][]string{}
	for i := range object.Findings {
		f := &object.Findings[i]
		if _, said := rules[f.Message]; !said {
			messages = append(messages, f.Message)
			warnings = append(warnings, f.Warnings...)
		}
		rules[f.Message] = append(rules[f.Message], codeSpan(f.Name))
	}
	var said []string
	for _, m := range messages {
		said = append(said, codeSpan(m)+" ("+few(rules[m])+")")
	}
	text := "- " + codeSpan(object.Name) + ": " + few(said) + "\n"
	for _, w := range warnings {
		text += "  - warning: " + codeSpan(w) + "\n"
	}
	return text
}

// few names the first of many.
func few(texts []string) string {
	if rest := len(texts) - rulesNamed; rest > 0 {
		return fmt.Sprintf("%s and %d more", strings.Join(texts[:rulesNamed], ", "), rest)
	}
	return strings.Join(texts, ", ")
}

func (p *Results) section(v report.Verdict) *section {
	switch v {
	case report.Pass:
		return &p.reached
	case report.Skip:
		return &p.left
	case report.Fail, report.Error:
	}
	return &p.failed
}

// Trouble adds a line to the summary.
func (p *Results) Trouble(err error) error {
	p.problems.add(err, p.masker)
	return nil
}

// Write writes the page.
func (p *Results) Write() error {
	var b bytes.Buffer
	b.WriteString(ResultsMarker + "\n" + p.heading() + p.suffix + "\n")
	p.problems.write(&b)
	p.failed.title, p.left.title, p.reached.title = "Not as wanted", "Left alone", "As wanted"
	if p.objects() > 0 {
		b.WriteString("\n| outcome | objects |\n|---|---:|\n")
		for _, s := range []*section{&p.reached, &p.left, &p.failed} {
			for _, c := range s.outcomes {
				fmt.Fprintf(&b, "| %s | %d |\n", c.outcome, c.objects)
			}
		}
	}
	untold := 0
	for _, s := range []*section{&p.failed, &p.left, &p.reached} {
		untold += s.write(&b, p.limit-reserve)
	}
	if untold > 0 {
		fmt.Fprintf(&b, "\n**Cut at %d KiB**: %s not listed.\n", p.limit>>10, wording.Plural(untold, "object"))
	}
	_, err := p.out.Write(b.Bytes())
	return err
}

func (p *Results) objects() int { return p.failed.objects + p.left.objects + p.reached.objects }

// heading says it in a line.
func (p *Results) heading() string {
	all := p.objects()
	if all == 0 {
		return "# Mutation policies: no object to write"
	}
	text := fmt.Sprintf("# Mutation policies: %d of %s as wanted", p.reached.objects, wording.Plural(all, "object"))
	if p.failed.objects > 0 {
		text += fmt.Sprintf(", %d not", p.failed.objects)
	}
	if p.left.objects > 0 {
		text += fmt.Sprintf(", %d left alone", p.left.objects)
	}
	return text
}

// write lists as many of the objects as there is room for, folded, and says how many
// it leaves out.
func (s *section) write(b *bytes.Buffer, limit int) (untold int) {
	var list strings.Builder
	told := 0
	for _, line := range s.lines {
		if b.Len()+list.Len()+len(line) > limit {
			break
		}
		list.WriteString(line)
		told++
	}
	if told > 0 {
		fmt.Fprintf(b, "\n<details><summary>%s: %s</summary>\n\n%s\n</details>\n", s.title, wording.Plural(s.objects, "object"), list.String())
	}
	return s.objects - told
}
