// Package html writes a run as one HTML file for a change review, and a comparison as one without a script.
//
// The file needs no network and no server, and its content policy lets nothing run
// but the one script that is part of this package. Objects that change alike are
// one change. All changes are in the file as compressed data, from which the script
// builds the rows that are looked at; the first of them are there as HTML, too, so
// that the page can be read without scripts.
//
// Names and values come from clusters and policies. They reach the page through
// html/template, or as data that become text, never markup.
package html

import (
	"crypto/sha256"
	_ "embed" // the parts of the page
	"encoding/base64"
	"fmt"
	"html/template"
	"regexp"
	"strconv"
	"strings"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/evaluation"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/output"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/output/report"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/redact"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/wording"
)

// The parts of the page. The style and the script are written as they are, and
// what the content policy lets run is known by their hashes.
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

// page is what the template shows.
type page struct {
	frame
	Script template.JS

	Sentence, Restarts    string
	Tiles                 []tile
	Charts                []chart
	Rules                 ruleTable
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
	Alarm string // a sign beside the number, "" for none
}

// row is a change as the page without scripts shows it.
type row struct {
	*change
	Title, Where string
	Tags         []tag
	Warnings     []warning
	Lines        []diffLine
	Objects      []string
	ObjectsRest  int
}

type tag struct{ Class, Text string }

type diffLine struct{ Class, Text string }

// skippedListed and membersListed bound lists of the page without scripts, and
// staticDiff a diff in it.
const (
	skippedListed = 5
	membersListed = 20
	staticDiff    = 8 << 10
)

func (p *Printer) write(s evaluation.Summary) error {
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

// contentPolicy lets nothing load, and nothing run but the page's own style and
// script, if it has one. Scripts may only add text: what makes markup of text is refused.
func contentPolicy(script string) template.HTML {
	source := func(directive, text string) string {
		if text == "" {
			return "" // none, as all that is not named
		}
		sum := sha256.Sum256([]byte(text))
		return directive + " 'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'; "
	}
	return template.HTML(`<meta http-equiv="Content-Security-Policy" content="default-src 'none'; ` + source("style-src", style) + source("script-src", script) +
		`base-uri 'none'; form-action 'none'; require-trusted-types-for 'script'; trusted-types 'none'">`) // nothing in it comes from outside
}

func (p *Printer) page(s *evaluation.Summary) *page {
	out := &page{
		frame: p.frame, Script: template.JS(script), // a part of this package
		Sentence: groupedIn(wording.Counts(*s)), Restarts: groupedIn(wording.Restarts(s.Restarts)),
		Tiles: tiles(s), Rules: p.rules(s), Distinct: p.changes,
	}
	out.Title = title(s)
	for i := range s.Rules {
		p.overview.policies.of(policyName(s.Rules[i].Rule))
	}
	out.Charts = []chart{
		p.overview.policies.chartOf("By policy", "Policy", "policy"),
		p.overview.namespaces.chartOf("By namespace", "Namespace", "namespace"),
	}
	out.Skipped, out.SkippedRest = p.overview.skipped.Top(skippedListed)
	for i := range out.Skipped {
		out.Skipped[i].Text = line(out.Skipped[i].Text, textLength)
	}
	out.CommandTitle, out.Command = p.command(s)
	for at := levels - 1; at >= 0; at-- {
		for _, number := range p.order[at] {
			if len(out.Static) < maxStatic {
				out.Static = append(out.Static, rowOf(p.static[number]))
			}
		}
	}
	return out
}

// command is what to type next.
func (p *Printer) command(s *evaluation.Summary) (title, command string) {
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
	return fmt.Sprintf("%s of %s would change", wording.Number(s.Changed), wording.PluralNumber(s.Objects, "object"))
}

func escapedContext(c output.Context) output.Context {
	for _, s := range []*string{&c.Context, &c.Server, &c.User, &c.Namespace, &c.Operation, &c.Version, &c.Time} {
		*s = line(*s, nameLength)
	}
	return c
}

func tiles(s *evaluation.Summary) []tile {
	out := []tile{{"objects evaluated", s.Objects, ""}, {"would change", s.Changed, ""}, {"fields", s.Fields, ""}}
	for _, t := range []tile{
		{"Pods would restart", s.Restarts.Pods, "warned"},
		{"would be refused", s.Refused, "failed"},
		{"warnings", s.Warnings, "warned"},
		{"incomplete", s.Incomplete, "failed"},
	} {
		if t.N > 0 {
			out = append(out, t)
		}
	}
	return out
}

func rowOf(c *change) row {
	out := row{change: c, Title: displayName(c.first[0]), Where: others(c), Tags: tags(c), Warnings: c.Warnings}
	if c.count > 1 {
		out.Warnings = c.Alike
		if c.pods > 0 {
			out.Warnings = append([]warning{{Code: string(engine.ImpactRollout), Text: wording.PluralNumber(c.pods, "Pod") + " would restart in total"}}, c.Alike...)
		}
		for _, m := range c.first {
			out.Objects = append(out.Objects, displayName(m))
		}
		out.ObjectsRest = c.count - len(c.first)
	}
	for line := range strings.Lines(cutLines(c.diff, staticDiff)) {
		out.Lines = append(out.Lines, diffLine{lineClass(line), line})
	}
	return out
}

// displayName is "shop/web".
func displayName(m member) string { return strings.TrimPrefix(m.Namespace+"/"+m.Name, "/") }

func others(c *change) string {
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
	if c.Level == failed {
		out = append(out, tag{"failed", "✕ incomplete"})
	}
	if c.Level >= warned && (len(c.Warnings) > 0 || c.Level == warned) {
		out = append(out, tag{"warned", "! warning"})
	}
	if c.Verb == "create" {
		out = append(out, tag{"plain", "new object"})
	}
	if c.Fields > 0 {
		out = append(out, tag{"plain", wording.PluralNumber(c.Fields, "field")})
	}
	return out
}

// pathParts cuts a path where a line of it may end.
func pathParts(path string) []string { return strings.SplitAfter(path, ".") }

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

var largeNumber = regexp.MustCompile(`[0-9]{4,18}`)

// groupedIn is a sentence with commas in its numbers, as in all others of the page.
func groupedIn(sentence string) string {
	return largeNumber.ReplaceAllStringFunc(sentence, func(digits string) string {
		n, err := strconv.Atoi(digits)
		if err != nil {
			return digits
		}
		return wording.Number(n)
	})
}

// frame is what the pages have in common. Its texts are masked and escaped.
type frame struct {
	Policy template.HTML // of content
	Style  template.CSS

	What, Done     string // "Mutation preview", "evaluated"
	Title          string
	Context        output.Context
	Clusters       []clusterRow
	ClusterChanged string
	Problems       []string
	Unlisted       int // problems that are too many
}

// clusterRow is what came of a cluster of several.
type clusterRow struct {
	output.Cluster
	Problem string
}

func (f *frame) fleet(e output.Fleet) {
	for _, c := range e.Clusters {
		row := clusterRow{Cluster: c}
		row.Name = line(c.Name, nameLength)
		if c.Err != nil {
			row.Problem = line(c.Err.Error(), textLength)
		}
		f.Clusters = append(f.Clusters, row)
	}
}

// problem adds what went wrong beside the objects; it stands above everything.
func (f *frame) problem(err error) {
	if len(f.Problems) == maxProblems {
		f.Unlisted++
		return
	}
	f.Problems = append(f.Problems, report.Cut(report.ProblemOf(err).Text, textLength))
}

// parsed is the template of a page, with the parts that all have in common.
func parsed(source string) (*template.Template, error) {
	t, err := template.New("page").Funcs(template.FuncMap{"n": wording.Number, "parts": pathParts}).Parse(frameSource)
	if err != nil {
		return nil, err
	}
	return t.Parse(source)
}
