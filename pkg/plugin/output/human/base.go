// Package human prints what a run finds and writes for people: as a diff, a summary, a table or Markdown,
// with objects that change alike shown as one.
package human

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/output"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/redact"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/wording"
)

// base is the common part of the formats for a preview: headings, the grouping of objects that change alike,
// and the summary at the end.
type base struct {
	output.Options
	printed  bool // something was printed
	spaced   bool // an empty line stands between two groups
	markdown bool // a page of Markdown
	groups   []*group
	known    map[groupKey]*group // these groups
	wide     bool                // nothing is shortened
	byShape  bool                // objects are alike whatever their values are
	valued   bool                // the values of every field are shown
	grouped  int                 // number of groups so far
	parts    bool                // groups had to be shown before all objects were seen
	overview *overview           // nil if each change is shown, however many there are
	// What the summary says besides numbers.
	skipped, warned, broken Counter
	often                   Varieties
	running                 running
	remarked                int              // objects with a warning, or on which a rule failed
	nameless                engine.ObjectKey // the object whose name is left out of strings
}

func newBase(o output.Options) base {
	return base{Options: o, spaced: o.Explain, known: map[groupKey]*group{}}
}

func (h *base) page() *page { return &page{color: h.Color} }

// write writes a block at once, so that an error in it leaves no half of it behind.
func (h *base) write(b *page) error {
	h.printed = true
	_, err := h.Out.Write(b.Bytes())
	return err
}

// begin counts an object for the summary at the end.
func (h *base) begin(c *engine.Change) {
	remarked := len(c.Impacts) > 0
	for _, s := range c.Steps {
		if s.Outcome.Incomplete() {
			h.broken.Add(wording.Rule(s.Rule.WithoutParameter()) + " " + string(s.Outcome) + ": " +
				wording.WithoutName(wording.Brief(s.Err), c.Subject))
		}
		for _, w := range s.Warnings {
			h.warned.Add(wording.WithoutName(string(w), c.Subject))
		}
		remarked = remarked || s.Outcome.Incomplete() || len(s.Warnings) > 0
	}
	for _, s := range c.HeldBack() {
		h.skipped.Add(h.overview.reason(wording.WithoutName(wording.Brief(s.Err), c.Subject)))
	}
	for i := range c.Impacts {
		if text := h.overview.remark(&c.Impacts[i], c.Subject.Kind); text != "" {
			h.warned.Add(text)
		}
	}
	if remarked {
		h.remarked++
	}
	if h.overview != nil && c.Changed() && c.Incomplete() {
		h.overview.partly = true
	}
	if !c.AsCreated {
		h.running.add(c)
	}
	if h.overview != nil || h.markdown {
		h.often.Add(c.Fields)
	}
}

// show prints an object, or keeps it to print it with others. Words are equal for objects that are shown as
// one.
func (h *base) show(c *part, words []byte, what func() (shown, error)) error {
	key := groupKey{section: h.section(c)}
	if h.GroupBy != output.ByObject {
		key.likeness = h.likeness(&c.Change, words)
	}
	g := h.known[key]
	if g == nil {
		text, err := what()
		if err != nil {
			return err
		}
		text.note = h.origin(&c.Change) + text.note
		if h.overview != nil && h.crowded(text) {
			return nil
		}
		g = &group{shown: text, section: key.section, first: c.Subject, impacts: c.Impacts}
		h.known[key] = g
		h.groups = append(h.groups, g)
		h.grouped++
	}
	g.add(&c.Change, h.origin(&c.Change), h.ListAll)
	if h.byShape || h.valued {
		g.fields.Add(c.Fields)
	}
	switch {
	case h.GroupBy == output.ByObject:
		return h.Flush()
	case len(h.known) < maxGroups:
		return nil
	}
	h.parts = true
	return h.Flush()
}

// crowded reports whether a new group is left out because there are too many to list. Then only failures are
// listed.
func (h *base) crowded(text shown) bool {
	v := h.overview
	if !v.crowded && len(h.groups) == crowd {
		v.crowded = true
		h.groups = slices.DeleteFunc(h.groups, func(g *group) bool { return v.leavesOut(g.marker) })
		maps.DeleteFunc(h.known, func(_ groupKey, g *group) bool { return !slices.Contains(h.groups, g) })
	}
	return v.leavesOut(text.marker)
}

// likeness is equal for objects of a kind that are shown in the same words, and whose shown fields have the
// same values before and after; with byShape, whatever the values.
func (h *base) likeness(c *engine.Change, words []byte) [32]byte {
	hash := sha256.New()
	fmt.Fprintf(hash, "%q %q %q %v %s", wording.Kind(c.Subject), c.Subject.Of.Template, marker(c),
		c.Subject.Namespace == "", words)
	for i := range c.Impacts {
		fmt.Fprintf(hash, "%q %q ", c.Impacts[i].Code, c.Impacts[i].Alike())
	}
	if h.byShape {
		var shape Varieties
		shape.Add(c.Fields)
		for _, of := range shape.all {
			fmt.Fprintf(hash, "%q %q ", of.field(), of.Rule.String())
		}
		return [32]byte(hash.Sum(nil))
	}
	values := json.NewEncoder(hash)
	for _, f := range c.Fields {
		// an error would be one of the diff as well
		_ = values.Encode([]any{f.Kind, engine.PathString(f.Path), f.From, f.To})
	}
	return [32]byte(hash.Sum(nil))
}

// Flush prints what is kept below the headings of sections: namespaces by name, all else in the order of
// arrival.
func (h *base) Flush() error {
	var titles []string
	sections := map[string][]*group{}
	for _, g := range h.groups {
		if sections[g.section] == nil {
			titles = append(titles, g.section)
		}
		sections[g.section] = append(sections[g.section], g)
	}
	h.groups = nil
	clear(h.known)
	if h.GroupBy == output.ByNamespace {
		slices.Sort(titles)
	}
	for _, title := range titles {
		if title != "" {
			if err := h.heading(title); err != nil {
				return err
			}
		}
		for _, g := range sections[title] {
			b := h.page()
			h.group(b, g)
			if err := h.write(b); err != nil {
				return err
			}
		}
	}
	return nil
}

// heading writes the heading of a section.
func (h *base) heading(title string) error {
	b := h.page()
	if h.printed {
		b.WriteString("\n")
	}
	if h.markdown {
		title = "## " + codeSpan(title)
	} else {
		title = "== " + title
	}
	b.line(Bold, title)
	return h.write(b)
}

// group writes the heading of a group and what is below it.
func (h *base) group(b *page, g *group) {
	if h.printed && (h.spaced || h.markdown) {
		b.WriteString("\n")
	}
	if !h.markdown {
		b.line(markerColor(g.marker), g.String())
		h.below(b, g)
		return
	}
	b.WriteString("### " + codeSpan(g.String()) + "\n")
	body := h.page()
	h.below(body, g)
	if body.Len() > 0 {
		fenced(b, "diff", body.String())
	}
}

// below writes what follows the heading of a group.
func (h *base) below(b *page, g *group) {
	body := g.body
	if g.count > 1 {
		members(b, g)
		body = g.several
	}
	impacts(b, g)
	g.fields.examples(b, h.valued)
	b.Write(body)
	b.Write(g.diff)
}

// placed says in how many namespaces, or on how many clusters, the objects of a group are.
func placed(all []wording.Count, preposition, what string) string {
	switch len(all) {
	case 0:
		return ""
	case 1:
		return preposition + all[0].Text
	}
	return fmt.Sprintf("%s%d %s", preposition, len(all), what)
}

// namespacesListed is the maximum number of places that listed names.
const namespacesListed = 8

// members names the objects of a group, or where they are.
func members(b *page, g *group) {
	if len(g.names) == g.count {
		for _, name := range g.names {
			b.line(Plain, "    "+name)
		}
		return
	}
	const all = " (--list-all lists them)"
	namespaces, clusters := g.namespaces.All(), g.clusters.All()
	if len(namespaces) < 2 && len(clusters) < 2 {
		b.line(Plain, fmt.Sprintf("    %s, %s and %d more"+all, g.names[0], g.names[1], g.count-2))
		return
	}
	if len(clusters) > 1 {
		b.line(Plain, "    on "+listed(clusters)+all)
	}
	if len(namespaces) > 1 {
		b.line(Plain, "    in "+listed(namespaces)+all)
	}
}

// listed lists the places with the most objects.
func listed(all []wording.Count) string {
	parts := make([]string, 0, namespacesListed+1)
	for i, place := range all {
		if i == namespacesListed {
			parts = append(parts, fmt.Sprintf("and %d more", len(all)-i))
			break
		}
		parts = append(parts, fmt.Sprintf("%s (%d)", place.Text, place.N))
	}
	return strings.Join(parts, ", ")
}

// shortName returns "shop/web", for where the kind is known, or "shop/web on prod" with a cluster.
func shortName(k engine.ObjectKey) string {
	name := strings.TrimPrefix(k.Namespace+"/"+k.Place().Name, "/")
	if k.Cluster != "" {
		name += " on " + k.Cluster
	}
	return name
}

// origin returns where an object was read, to follow its name: on a page of Markdown, and where a rule
// failed.
func (h *base) origin(c *engine.Change) string {
	if c.Target.Origin == "" || !h.markdown && !c.Incomplete() {
		return ""
	}
	return " (" + c.Target.Origin + ")"
}

// marker returns the first character of a line, which says what happens to the object.
func marker(c *engine.Change) string {
	switch {
	case c.Changed() && c.Before == nil:
		return "+"
	case c.Changed():
		return "~"
	case c.Incomplete():
		return failure
	}
	return "="
}

// failure is the marker of an unchanged object on which a rule failed.
const failure = "!"

// markerColor returns the colour of a marker.
func markerColor(m string) Color {
	switch m {
	case "+":
		return Green
	case failure:
		return Red
	}
	return Bold
}

// impacts writes what the changes of a group mean beyond their fields: in full for one object, in general
// for several.
func impacts(b *page, g *group) {
	warning := func(code engine.ImpactCode, text string) {
		b.WriteString("  ")
		b.line(Yellow, "! "+string(code)+": "+text)
	}
	for _, impact := range g.impacts {
		text := impact.Text
		if impact.Advice != "" {
			text += "; " + impact.Advice
		}
		switch {
		case g.count == 1:
			warning(impact.Code, text)
		case impact.Pods == 0:
			warning(impact.Code, cmp.Or(impact.Brief, text))
		}
	}
	if g.count > 1 && g.pods > 0 {
		warning(engine.ImpactRollout, wording.Plural(g.pods, "Pod")+" would restart in total")
	}
}

// page is text for people, and the one place where it is escaped: nothing written to it acts on a terminal
// or a CI runner, or forges a line.
type page struct {
	bytes.Buffer
	color bool
}

// paint writes a string in a color, if the page has colors.
func (p *page) paint(c Color, text string) {
	if p.color && c != Plain && text != "" {
		text = string(c) + text + reset
	}
	p.WriteString(text)
}

// line writes a string as one line.
func (p *page) line(c Color, text string) {
	p.paint(c, redact.EscapeLine(text))
	p.WriteByte('\n')
}

// unified returns a unified diff in colors. It is escaped already, so that what is compared is what is
// shown.
func (h *base) unified(diff string) []byte {
	p := h.page()
	p.Grow(len(diff))
	for l := range strings.Lines(diff) {
		content, newline := strings.CutSuffix(l, "\n")
		p.paint(lineColor(content), content)
		if newline {
			p.WriteByte('\n')
		}
	}
	return p.Bytes()
}

// cutMiddle cuts the middle of a string that is too long: a rule begins with its policy, and a path ends
// with its field.
func cutMiddle(text string, most int) string {
	if len(text) <= most {
		return text
	}
	half := (most - len("...")) / 2
	return strings.ToValidUTF8(text[:most-len("...")-half], "") + "..." +
		strings.ToValidUTF8(text[len(text)-half:], "")
}

// table writes rows with aligned columns.
func (p *page) table(rows [][]string) { p.WriteString(wording.Table(rows)) }

// escapedCells escapes the strings of a row in place, each on one line, with another for empty ones.
func escapedCells(texts []string, empty string) []string {
	for i := range texts {
		texts[i] = cmp.Or(redact.EscapeLine(texts[i]), empty)
	}
	return texts
}

// Color is the escape sequence that begins a color.
type Color string

// The colors.
const (
	Plain  Color = ""
	Bold   Color = "\x1b[1m"
	Red    Color = "\x1b[31m"
	Green  Color = "\x1b[32m"
	Yellow Color = "\x1b[33m"
	Cyan   Color = "\x1b[36m"

	reset = "\x1b[0m"
)
