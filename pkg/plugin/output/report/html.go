// This file writes a run as one HTML file for a change review, and a comparison as one without a script.
//
// The file needs no network and no server, and its content policy allows only the one script of this
// package. Objects in which the same rules change the same fields are one change, with an example. The file
// has all changes as compressed data, from which the script builds the visible rows; the first of them are
// also HTML, so that the page can be read without scripts.
//
// Names and values from clusters and policies reach the page through html/template, or as data that becomes
// text, never markup.

package report

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"crypto/sha256"
	_ "embed" // the parts of the page
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"html/template"
	"io"
	"slices"
	"strings"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/compare"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/evaluation"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/output"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/output/human"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/redact"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/wording"
)

// The parts of the page. The style and the script are written unchanged, and the content policy allows them
// by their hashes.
var (
	//go:embed assets/frame.html
	frameSource string
	//go:embed assets/page.html
	pageSource string
	//go:embed assets/comparison.html
	comparisonSource string
	//go:embed assets/style.css
	style string
	//go:embed assets/script.js
	script string
)

// page is the data of the template.
type page struct {
	frame
	Script template.JS

	Sentence              string
	Restarts, SetBack     string
	Tiles                 []tile
	Owners                []wording.Count
	Charts                []chart
	Frequent              []*human.Variety
	Outcomes              []engine.Outcome // of the table of rules
	Rules                 []evaluation.RuleSummary
	RulesRest             int // rules that matched no object
	Skipped               []wording.Count
	SkippedRest           int
	Command, CommandTitle string
	Static                []row
	Distinct              int // changes
}

// tile is a number of the summary.
type tile struct {
	Label string
	N     int
	Alarm string // the class of a sign beside the number, if any
}

// row is a change on the page without scripts.
type row struct {
	*change
	Title, Where string
	Warnings     []warning
	Lines        []diffLine
	Objects      []member
	ObjectsRest  int
}

type tag struct {
	Class string `json:"class"`
	Text  string `json:"text"`
}

type diffLine struct{ Class, Text string }

// The limits of the page without scripts; staticDiff is in bytes.
const (
	skippedListed = 5
	membersListed = 20
	staticDiff    = 4 << 10
)

func (p *HTML) write(s evaluation.Summary) error {
	t, err := parsed(pageSource)
	if err != nil {
		return err
	}
	content := p.page(&s)
	if err := t.ExecuteTemplate(p.options.Out, "begin", content); err != nil {
		return err
	}
	if err := p.island(p.options.Out); err != nil {
		return err
	}
	return t.ExecuteTemplate(p.options.Out, "end", content)
}

// contentPolicy allows only the page's own style and script, if it has one, and nothing to be loaded.
// Scripts may only add text: functions that parse markup are refused.
func contentPolicy(script string) template.HTML {
	source := func(directive, text string) string {
		if text == "" {
			return "" // not allowed, like all that is not named
		}
		sum := sha256.Sum256([]byte(text))
		return directive + " 'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'; "
	}
	return template.HTML(`<meta http-equiv="Content-Security-Policy" content="default-src 'none'; ` + source("style-src", style) + source("script-src", script) +
		`base-uri 'none'; form-action 'none'; require-trusted-types-for 'script'; trusted-types 'none'">`) // nothing in it comes from outside
}

func (p *HTML) page(s *evaluation.Summary) *page {
	out := &page{
		frame: p.frame, Script: template.JS(script), // a part of this package
		Sentence: wording.Counts(*s), Restarts: wording.Restarts(s.Restarts), SetBack: wording.SetBack(s.SetBack),
		Tiles: tiles(s), Outcomes: human.Outcomes(*s), Rules: s.Rules, Distinct: len(p.changes),
	}
	if !p.options.Explain {
		out.Rules = evaluation.MergeParameters(s.Rules)
		all := len(out.Rules)
		out.Rules = slices.DeleteFunc(out.Rules, evaluation.RuleSummary.MetNothing)
		out.RulesRest = all - len(out.Rules)
	}
	out.Title = title(s)
	for i := range s.Rules {
		p.overview.policies.add(policyName(s.Rules[i].Rule), false, false)
	}
	out.Charts = []chart{
		p.overview.policies.chartOf("By policy", "Policy", "policy"),
		p.overview.namespaces.chartOf("By namespace", "Namespace", "namespace"),
	}
	out.Owners, _ = p.overview.owners.Top(skippedListed)
	if len(p.changes) > 1 {
		out.Frequent = p.overview.fields.Frequent(barsShown)
	}
	out.Skipped, out.SkippedRest = p.overview.skipped.Top(skippedListed)
	out.CommandTitle, out.Command = p.command(s)
	for _, c := range p.changes[:min(len(p.changes), maxStatic)] {
		out.Static = append(out.Static, rowOf(c))
	}
	return out
}

// command returns the next command to type.
func (p *HTML) command(s *evaluation.Summary) (title, command string) {
	if p.options.Hint == nil {
		return "", ""
	}
	hint := p.options.Hint(*s)
	title, command = "To make these changes", hint.Next
	if command == "" {
		title, command = "To see why", hint.Why
	}
	return title, redact.EscapeLine(command)
}

func title(s *evaluation.Summary) string {
	if s.Objects == 0 {
		return "No object was evaluated"
	}
	return fmt.Sprintf("%s of %s would change", wording.Number(s.Changed),
		wording.PluralNumber(s.Objects, "object"))
}

func tiles(s *evaluation.Summary) []tile {
	out := []tile{{"objects evaluated", s.Objects, ""}, {"would change", s.Changed, ""}}
	for _, t := range []tile{
		{"Pods would restart", s.Restarts.Pods, "warned"},
		{"ignored", s.Ignored, ""},
		{"would be refused", s.Refused, "failed"},
		{"warnings", s.Warnings, "warned"},
		{"incomplete", s.Incomplete, "failed"},
		{"fields", s.Fields - s.Records, ""},
	} {
		if t.N > 0 {
			out = append(out, t)
		}
	}
	return out
}

func rowOf(c *change) row {
	out := row{change: c, Title: c.first[0].String(), Where: otherObjects(c), Warnings: c.Warnings}
	if c.count > 1 || len(c.first[0].Own) > 0 {
		out.Objects, out.ObjectsRest = c.first, c.count-len(c.first)
	}
	if c.count > 1 {
		out.Warnings = c.Alike
		if c.pods > 0 {
			out.Warnings = append([]warning{{
				Code: string(engine.ImpactRollout),
				Text: wording.PluralNumber(c.pods, "Pod") + " would restart in total",
			}}, c.Alike...)
		}
	}
	for line := range strings.Lines(cutLines(c.diff, staticDiff)) {
		out.Lines = append(out.Lines, diffLine{lineClass(line), line})
	}
	return out
}

// String returns "shop/web".
func (m member) String() string { return strings.TrimPrefix(m.Namespace+"/"+m.Name, "/") }

func otherObjects(c *change) string {
	if c.count == 1 {
		return ""
	}
	if n := len(c.namespaces); n > 1 {
		return fmt.Sprintf("and %s more, in %s namespaces", wording.Number(c.count-1), wording.Number(n))
	}
	return fmt.Sprintf("and %s more", wording.Number(c.count-1))
}

func tags(c *change) []tag {
	var out []tag
	if c.Verdict != "" {
		out = append(out, tag{string(c.Level), map[level]string{failed: "✕ ", warned: "! "}[c.Level] + c.Verdict})
		if c.Variant != "" {
			out = append(out, tag{"plain", "a variant"})
		}
		return out
	}
	if c.Level == failed {
		out = append(out, tag{"failed", "✕ incomplete"})
	}
	if c.pods > 0 {
		out = append(out, tag{"warned", "! " + wording.PluralNumber(c.pods, "Pod") + " restart"})
	}
	for i, w := range c.Warnings {
		repeated := slices.ContainsFunc(c.Warnings[:i], func(before warning) bool { return before.Code == w.Code })
		if repeated || c.pods > 0 && w.Code == string(engine.ImpactRollout) {
			continue
		}
		out = append(out, tag{"warned", "! " + w.Code})
	}
	if c.Level == warned && len(c.Warnings) == 0 {
		out = append(out, tag{"warned", "! warning"})
	}
	if c.New {
		out = append(out, tag{"plain", "new object"})
	}
	if c.Fields > 0 {
		out = append(out, tag{"plain", wording.PluralNumber(c.Fields, "field")})
	}
	return out
}

func lineClass(line string) string {
	switch line[0] {
	case '+':
		return "add"
	case '-':
		return "del"
	case '@':
		return "hunk"
	}
	return "same"
}

// frame is the common part of the pages. Its strings are masked; Context and Clusters are escaped where they
// are shown.
type frame struct {
	Policy template.HTML // of content
	Style  template.CSS

	What, Done     string // "Mutation preview", "evaluated"
	Title          string
	Context        output.Context
	Clusters       []output.Cluster
	ClusterChanged string
	Problems       []string
	Unlisted       int // problems that are too many
}

// problem adds an error that is not about an object, which is shown above everything.
func (f *frame) problem(err error) {
	if len(f.Problems) == maxHTMLProblems {
		f.Unlisted++
		return
	}
	f.Problems = append(f.Problems, Cut(ProblemOf(err).Text, textLength))
}

// parsed returns the template of a page with the common parts.
func parsed(source string) (*template.Template, error) {
	t, err := template.New("page").Funcs(template.FuncMap{
		"n": wording.Number,
		// with possible line breaks
		"parts":   func(path string) []string { return strings.SplitAfter(path, ".") },
		"line":    func(s string) string { return line(s, nameLength) },
		"text":    func(s string) string { return line(s, textLength) },
		"rule":    func(r engine.RuleRef) string { return line(wording.Rule(r), nameLength) },
		"merged":  func(r evaluation.RuleSummary) string { return line(wording.MergedRule(r), nameLength) },
		"side":    func(side int) string { return compare.Side(side).String() },
		"objects": func(outcomes map[engine.Outcome]int, of string) int { return outcomes[engine.Outcome(of)] },
	}).Parse(frameSource)
	if err != nil {
		return nil, err
	}
	return t.Parse(source)
}

// The limits of the page.
const (
	maxStatic       = 20 // changes that are also there without scripts
	maxHTMLProblems = 100
)

// NewHTML returns a printer that collects the changes of a run, or the differences of a comparison, and
// writes the page when it is closed.
func NewHTML(o output.Options) *HTML {
	p := &HTML{
		options: o, differ: human.NewDiffer(o), known: map[string]*change{}, differences: map[section][]*change{},
		overview: overview{policies: counts{}, namespaces: counts{}},
		frame: frame{
			Policy: contentPolicy(script), Style: template.CSS(style), // parts of this package
			What: "Mutation preview", Done: "evaluated", ClusterChanged: "would change", Context: o.Context,
		},
	}
	if o.Converts {
		p.frame.Policy, p.frame.What, p.frame.Done = contentPolicy(""), "Policy conversion", "converted"
	}
	if o.Compares {
		p.frame.Policy, p.frame.What, p.frame.Done, p.frame.ClusterChanged = contentPolicy(""),
			"Policy comparison", "compared", "differ"
	}
	return p
}

// HTML writes the report. It holds a limited number of differences of a comparison.
type HTML struct {
	options output.Options
	differ  output.Differ
	frame   frame
	known   map[string]*change // by shape

	changes  []*change    // distinct ones, numbered in the order of arrival
	members  bytes.Buffer // their objects
	overview overview
	summary  evaluation.Summary

	differences map[section][]*change
	left        int // objects and variants with too many differences
	comparison  compare.Summary
	conversions []output.Converted
}

// Print adds an event to the page.
func (p *HTML) Print(s output.Shown) error {
	switch e := s.Event().(type) {
	case output.Fleet:
		p.frame.Clusters = append(p.frame.Clusters, e.Clusters...)
	case output.Evaluated:
		return p.object(e.Change)
	case output.Compared:
		if err := p.compared(e); err != nil {
			return fmt.Errorf("%s: %w", e.Subject, err)
		}
	case output.Problem:
		p.frame.problem(e.Err)
	case output.Summary:
		p.summary = e.Summary
	case output.Converted:
		p.conversions = append(p.conversions, e)
	case output.Conversion:
		p.frame.Title = e.Title
	case output.Comparison:
		p.comparison = e.Summary
	}
	return nil
}

// object adds an object, if it is listed.
func (p *HTML) object(c *engine.Change) error {
	alone := *c
	alone.Impacts, alone.Target.Origin = nil, "" // shown with the object, not with a rule
	object := Describe(&alone)
	p.overview.add(c, object.Findings)
	if !c.Changed() && !c.Writes() && levelOf(c) == plain && (!p.options.Explain || len(object.Findings) == 0) {
		return nil // not listed in the formats for people either
	}
	if err := p.add(c, object.Findings); err != nil {
		return fmt.Errorf("%s: %w", object.Name, err)
	}
	return nil
}

func (p *HTML) add(c *engine.Change, findings []Finding) error {
	described := p.describe(c, findings)
	shape, err := described.shape()
	if err != nil {
		return err
	}
	p.overview.fields.Add(c.Fields)
	alike := p.known[shape]
	if alike == nil {
		if alike = described; c.Changed() {
			unified, err := p.differ.Unified(c, nil)
			if err != nil {
				return err
			}
			alike.diff = diffText(unified)
		}
		alike.ID = len(p.changes)
		p.changes, p.known[shape] = append(p.changes, alike), alike
	}
	m := alike.join(memberOf(c, c.Incomplete()), described.Rules)
	text, err := json.Marshal([]any{alike.ID, m.Namespace, m.Name, m.Pods, m.Own})
	if err != nil {
		return err
	}
	p.members.Write(append(text, '\n'))
	return nil
}

// Close writes the page: the changes of the highest level first, and within a level those that restart Pods
// or that owners revert.
func (p *HTML) Close() error {
	if p.options.Compares || p.options.Converts {
		return p.writeComparison()
	}
	levels := []level{failed, warned, plain}
	slices.SortStableFunc(p.changes, func(a, b *change) int {
		return cmp.Or(slices.Index(levels, a.Level)-slices.Index(levels, b.Level), b.pods-a.pods,
			len(b.Warnings)-len(a.Warnings), b.count-a.count)
	})
	for _, c := range p.changes {
		c.finish()
	}
	return p.write(p.summary)
}

// island writes the changes as the script reads them: lines of JSON, compressed because most of their words
// repeat, as base64 because a page is text.
func (p *HTML) island(w io.Writer) error {
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

// lines writes the changes, and after an empty line their members. A diff has a line of its own, which is
// parsed only when it is shown.
func (p *HTML) lines(w io.Writer) error {
	encoder := json.NewEncoder(w)
	for _, c := range p.changes {
		if err := errors.Join(encoder.Encode(c), encoder.Encode(c.diff)); err != nil {
			return err
		}
	}
	_, err := fmt.Fprintf(w, "\n%s", p.members.Bytes())
	return err
}
