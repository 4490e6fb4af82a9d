package report

import (
	"bytes"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/evaluation"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/output"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/output/human"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/wording"
)

// MarkdownWritesMarker begins the page of a run that writes.
const MarkdownWritesMarker = "<!-- kubectl-mutate results -->"

// NewMarkdownWrites returns a page of what a run wrote with at most limit bytes; 0 stands for
// MaxMarkdownBytes.
func NewMarkdownWrites(o output.Options, limit int) *MarkdownWrites {
	if limit == 0 {
		limit = MaxMarkdownBytes
	}
	p := &MarkdownWrites{out: o.Out, limit: limit}
	if o.DryRun != "" {
		p.suffix = " (" + o.DryRun + " dry run)"
	}
	return p
}

// MarkdownWrites is a Report, written at its end: the number of objects with each outcome, then the objects
// that are not as wanted, then the others.
type MarkdownWrites struct {
	out      io.Writer
	limit    int
	suffix   string // of the heading
	problems human.Problems

	failed, skipped, passed writtenSection
}

// writtenSection is a list of objects with one verdict.
type writtenSection struct {
	title    string
	outcomes []string // of each
	reasons  wording.Reasons
}

// text returns the lines of the objects with a reason, or one line for many.
func text(r *wording.Reason) string {
	if !r.Many() {
		return strings.Join(r.Lines, "")
	}
	var names []string
	for _, key := range r.First {
		names = append(names, human.ShortSpan(key.String()))
	}
	return fmt.Sprintf("- %s (%s)%s", wording.Plural(r.Count, "object"), engine.FewOf(names, r.Count), r.Text)
}

// Add adds an object to its section.
func (p *MarkdownWrites) Add(object *Object) error {
	if len(object.Findings) == 0 {
		return nil
	}
	worst := &object.Findings[0]
	for i := range object.Findings {
		if f := &object.Findings[i]; f.Verdict == Error {
			worst = f
			break
		}
	}
	s := p.section(worst.Verdict)
	s.outcomes = append(s.outcomes, worst.Outcome)
	key, text := object.Key, resultsOf(object)
	line := "- " + human.ShortSpan(object.Name) + text
	if s == &p.passed { // each is listed
		key, text = engine.ObjectKey{}, line
	}
	if reason := s.reasons.Add(key, text); !reason.Many() {
		reason.Lines = append(reason.Lines, line)
	}
	return nil
}

// resultsOf returns the results of an object, each with its rules.
func resultsOf(object *Object) string {
	var messages, warnings []string
	rules := map[string][]string{}
	for _, f := range object.Findings {
		if _, known := rules[f.Message]; !known {
			messages = append(messages, f.Message)
			warnings = append(warnings, f.Warnings...)
		}
		rules[f.Message] = append(rules[f.Message], human.ShortSpan(f.Name))
	}
	var texts []string
	for _, m := range messages {
		texts = append(texts, human.ShortSpan(m)+" ("+engine.Few(rules[m])+")")
	}
	text := ": " + engine.Few(texts) + "\n"
	for _, w := range warnings {
		text += "  - warning: " + human.ShortSpan(w) + "\n"
	}
	return text
}

func (p *MarkdownWrites) section(v Verdict) *writtenSection {
	switch v {
	case Pass:
		return &p.passed
	case Skip:
		return &p.skipped
	case Fail, Error:
	}
	return &p.failed
}

// Problem adds a line to the summary.
func (p *MarkdownWrites) Problem(problem Problem) error {
	p.problems.Add(problem.Text)
	return nil
}

// Write writes the page.
func (p *MarkdownWrites) Write(evaluation.Summary) error {
	var b bytes.Buffer
	b.WriteString(MarkdownWritesMarker + "\n" + p.heading() + p.suffix + "\n")
	b.WriteString(p.problems.String())
	p.failed.title, p.skipped.title, p.passed.title = "Not as wanted", "Left alone", "As wanted"
	if p.objects() > 0 {
		b.WriteString("\n| outcome | objects |\n|---|---:|\n")
		for _, s := range []*writtenSection{&p.passed, &p.skipped, &p.failed} {
			counts := map[string]int{}
			for _, outcome := range s.outcomes {
				counts[outcome]++
			}
			for _, outcome := range engine.Distinct(slices.Clone(s.outcomes)) {
				fmt.Fprintf(&b, "| %s | %d |\n", outcome, counts[outcome])
			}
		}
	}
	unlisted := 0
	for _, s := range []*writtenSection{&p.failed, &p.skipped, &p.passed} {
		unlisted += s.write(&b, p.limit-reserve)
	}
	if unlisted > 0 {
		fmt.Fprintf(&b, "\n**Cut at %d KiB**: %s not listed.\n", p.limit>>10, wording.Plural(unlisted, "object"))
	}
	_, err := p.out.Write(b.Bytes())
	return err
}

func (p *MarkdownWrites) objects() int {
	return len(p.failed.outcomes) + len(p.skipped.outcomes) + len(p.passed.outcomes)
}

// heading sums up the run in a line.
func (p *MarkdownWrites) heading() string {
	all := p.objects()
	if all == 0 {
		return "# Mutation policies: no object to write"
	}
	text := fmt.Sprintf("# Mutation policies: %d of %s as wanted", len(p.passed.outcomes), wording.Plural(all, "object"))
	if len(p.failed.outcomes) > 0 {
		text += fmt.Sprintf(", %d not", len(p.failed.outcomes))
	}
	if len(p.skipped.outcomes) > 0 {
		text += fmt.Sprintf(", %d left alone", len(p.skipped.outcomes))
	}
	return text
}

// write lists as many of the objects as there is room for, folded, and returns how many it leaves out.
func (s *writtenSection) write(b *bytes.Buffer, limit int) (unlisted int) {
	var list strings.Builder
	listed := 0
	for _, reason := range s.reasons.All() {
		text := text(reason)
		if b.Len()+list.Len()+len(text) > limit {
			break
		}
		list.WriteString(text)
		listed += reason.Count
	}
	if listed > 0 {
		fmt.Fprintf(b, "\n<details><summary>%s: %s</summary>\n\n%s\n</details>\n", s.title, wording.Plural(len(s.outcomes), "object"), list.String())
	}
	return len(s.outcomes) - listed
}
