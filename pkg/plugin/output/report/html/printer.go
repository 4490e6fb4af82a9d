package html

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"html/template"
	"io"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/evaluation"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/output"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/output/human"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/output/objectdiff"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/output/report"
)

// The bounds of what is held in memory, however large the run is.
const (
	maxKnown    = 50_000 // changes to which like ones are added
	maxStatic   = 40     // changes of each level that are there without scripts, too
	maxProblems = 100
)

// New returns a printer that collects the changes, and writes the page when it is
// closed.
func New(o output.Options) *Printer {
	return &Printer{
		options: o, differ: human.NewDiffer(o),
		known: map[[32]byte]int{}, static: map[int]*change{},
		frame: frame{
			Policy: contentPolicy(script), Style: template.CSS(style), // parts of this package
			What: "Mutation preview", Done: "evaluated", ClusterChanged: "would change", Context: escapedContext(o.Context),
		},
	}
}

// Printer writes the report.
type Printer struct {
	options output.Options
	differ  objectdiff.Differ

	changes  int                  // distinct ones, numbered as they come
	known    map[[32]byte]int     // their numbers, by likeness
	static   map[int]*change      // those that are there without scripts, too
	order    [levels][]int        // the numbers of these
	data     [levels]bytes.Buffer // the changes of each level
	members  bytes.Buffer         // the objects that belong to them
	overview overview
	frame    frame
	summary  evaluation.Summary
}

// Print adds an event to the page.
func (p *Printer) Print(s output.Shown) error {
	switch e := s.Event().(type) {
	case output.Fleet:
		p.frame.fleet(e)
	case output.Evaluated:
		return p.object(e.Change)
	case output.Problem:
		p.frame.problem(e.Err)
	case output.Summary:
		p.summary = e.Summary
	}
	return nil
}

// object adds an object, if it is listed.
func (p *Printer) object(c *engine.Change) error {
	plain := *c
	plain.Impacts = nil // they stand at the object, not at a rule
	object := report.Describe(&plain)
	p.overview.add(c, object.Findings)
	if !p.listed(c, object.Findings) {
		return nil
	}
	if err := p.add(c, object.Findings); err != nil {
		return fmt.Errorf("%s: %w", object.Name, err)
	}
	return nil
}

// listed reports whether an object is listed: as in the formats for people.
func (p *Printer) listed(c *engine.Change, findings []report.Finding) bool {
	if c.Changed() || c.Writes() || levelOf(c) != plain {
		return true
	}
	return p.options.Explain && len(findings) > 0
}

func (p *Printer) add(c *engine.Change, findings []report.Finding) error {
	described := p.describe(c, findings)
	words, err := json.Marshal(described.Rules)
	if err != nil {
		return err
	}
	likeness := human.Likeness(c, words)
	number, ok := p.known[likeness]
	if !ok {
		number = p.changes
		if err := p.found(c, described); err != nil {
			return err
		}
		if len(p.known) < maxKnown {
			p.known[likeness] = number
		}
	}
	m := memberOf(c)
	if first := p.static[number]; first != nil {
		first.join(m)
	}
	text, err := json.Marshal([]any{number, m.Namespace, m.Name, m.Pods})
	if err != nil {
		return err
	}
	p.members.Write(append(text, '\n'))
	return nil
}

// found adds a change that is like none before it.
func (p *Printer) found(c *engine.Change, described *change) error {
	if c.Changed() {
		text, err := p.differ.Unified(c, nil)
		if err != nil {
			return err
		}
		described.diff = diffText(text)
	}
	described.ID = p.changes
	p.changes++
	text, err := json.Marshal(described)
	if err != nil {
		return err
	}
	// The diff has a line of its own, which is not read before it is looked at.
	diff, err := json.Marshal(described.diff)
	if err != nil {
		return err
	}
	if at := described.Level; len(p.order[at]) < maxStatic {
		p.order[at] = append(p.order[at], described.ID)
		p.static[described.ID] = described
	}
	fmt.Fprintf(&p.data[described.Level], "%s\n%s\n", text, diff)
	return nil
}

// Close writes the page.
func (p *Printer) Close() error { return p.write(p.summary) }

// island writes the changes as the script reads them: lines of JSON, compressed
// because they are alike in most of their words, as base64 because a page is text.
func (p *Printer) island(w io.Writer) error {
	if _, err := io.WriteString(w, `<script type="application/gzip" id="data">`); err != nil {
		return err
	}
	encoder := base64.NewEncoder(base64.StdEncoding, w)
	compressor := gzip.NewWriter(encoder)
	if err := p.lines(compressor); err != nil {
		return err
	}
	if err := errors.Join(compressor.Close(), encoder.Close()); err != nil {
		return err
	}
	_, err := io.WriteString(w, "</script>\n")
	return err
}

// lines writes the changes, those of the highest level first, and behind an empty
// line their members.
func (p *Printer) lines(w io.Writer) error {
	for at := levels - 1; at >= 0; at-- {
		if _, err := w.Write(p.data[at].Bytes()); err != nil {
			return err
		}
	}
	if _, err := io.WriteString(w, "\n"); err != nil {
		return err
	}
	_, err := w.Write(p.members.Bytes())
	return err
}
