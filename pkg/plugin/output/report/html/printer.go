package html

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"html/template"
	"io"
	"slices"

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
	maxStatic   = 40     // changes that are there without scripts, too
	maxProblems = 100
)

// New returns a printer that collects the changes, and writes the page when it is
// closed.
func New(o output.Options) *Printer {
	return &Printer{
		options: o, differ: human.NewDiffer(o),
		known: map[[32]byte]*change{},
		frame: frame{
			Policy: contentPolicy(script), Style: template.CSS(style), // parts of this package
			What: "Mutation preview", Done: "evaluated", ClusterChanged: "would change", Context: o.Context,
		},
	}
}

// Printer writes the report.
type Printer struct {
	options output.Options
	differ  objectdiff.Differ

	changes  []*change            // distinct ones, numbered as they come
	known    map[[32]byte]*change // by likeness
	members  bytes.Buffer         // the objects that belong to them
	overview overview
	frame    frame
	summary  evaluation.Summary
}

// Print adds an event to the page.
func (p *Printer) Print(s output.Shown) error {
	switch e := s.Event().(type) {
	case output.Fleet:
		p.frame.Clusters = append(p.frame.Clusters, e.Clusters...)
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
	alike := p.known[likeness]
	if alike == nil {
		if alike = described; c.Changed() {
			unified, err := p.differ.Unified(c, nil)
			if err != nil {
				return err
			}
			alike.diff = diffText(unified)
		}
		alike.ID = len(p.changes)
		if p.changes = append(p.changes, alike); len(p.known) < maxKnown {
			p.known[likeness] = alike
		}
	}
	m := memberOf(c)
	alike.join(m)
	text, err := json.Marshal([]any{alike.ID, m.Namespace, m.Name, m.Pods})
	if err != nil {
		return err
	}
	p.members.Write(append(text, '\n'))
	return nil
}

// Close writes the page, the changes of the highest level first.
func (p *Printer) Close() error {
	slices.SortStableFunc(p.changes, func(a, b *change) int { return cmp.Compare(b.Level, a.Level) })
	return p.write(p.summary)
}

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

// lines writes the changes, and behind an empty line their members. A diff has a line of its own, which is not read before it is
// looked at.
func (p *Printer) lines(w io.Writer) error {
	encoder := json.NewEncoder(w)
	for _, c := range p.changes {
		if err := errors.Join(encoder.Encode(c), encoder.Encode(c.diff)); err != nil {
			return err
		}
	}
	_, err := fmt.Fprintf(w, "\n%s", p.members.Bytes())
	return err
}
