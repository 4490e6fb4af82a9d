// Package human prints what a run finds, and what it wrote, for people: as a diff,
// a summary, a table or Markdown, with objects that change alike shown as one.
package human

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"strings"
	"text/tabwriter"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/output"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/redact"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/wording"
)

// base is what the formats for what was evaluated share: headings, the grouping of
// objects that change alike, and the summary at the end.
type base struct {
	output.Options
	printed bool // there is something above
	spaced  bool // an empty line stands between two groups
	// layout writes a group, and title the heading of a section.
	layout   func(*base, *page, *Group)
	title    func(string) string
	groups   Groups
	wide     bool      // nothing is shortened
	parts    bool      // the groups had to be shown before all objects were seen
	overview *overview // nil where each change is shown, however many there are
	// What the summary at the end says in addition to numbers.
	skipped, warned, broken Counter
	running                 running
	remarked                int              // objects with a warning, or on which a rule failed
	nameless                engine.ObjectKey // the object whose name is left out of texts, if any
}

func newBase(o output.Options) base {
	return base{
		Options: o, spaced: o.Explain, layout: (*base).group, title: func(s string) string { return "== " + s },
		groups: Groups{By: o.GroupBy, Expand: o.Expand},
	}
}

// page begins a block of text.
func (h *base) page() *page { return &page{painter: Painter(h.Color)} }

// write sends out one block. A block is written at once, so that an error in it
// leaves no half of it behind.
func (h *base) write(b *page) error {
	h.printed = true
	_, err := h.Out.Write(b.Bytes())
	return err
}

// begin counts an object for the summary at the end.
func (h *base) begin(c *engine.Change) {
	remarked := len(c.Impacts) > 0
	for _, s := range c.Steps {
		switch {
		case s.Outcome == engine.Skipped:
			h.skipped.Add(h.overview.reason(wording.WithoutName(wording.Brief(s.Err), c.Subject)))
		case s.Outcome.Incomplete():
			h.broken.Add(wording.Rule(s.Rule) + " " + string(s.Outcome) + ": " + wording.WithoutName(wording.Brief(s.Err), c.Subject))
		}
		for _, w := range s.Warnings {
			h.warned.Add(wording.WithoutName(string(w), c.Subject))
		}
		remarked = remarked || s.Outcome.Incomplete() || len(s.Warnings) > 0
	}
	for i := range c.Impacts {
		if text := h.overview.remark(&c.Impacts[i], c.Subject.Kind); text != "" {
			h.warned.Add(text)
		}
	}
	if remarked {
		h.remarked++
	}
	h.running.add(c)
	if h.overview != nil {
		h.overview.add(c)
	}
}

// show prints an object, or keeps it to print it with those that are like it. The words are equal for objects that are shown as one.
func (h *base) show(c *part, words []byte, what func() (Text, error)) error {
	m := Member{Subject: c.Subject, Origin: origin(&c.Change), Policy: c.policy, Pods: pods(&c.Change)}
	alone := h.GroupBy == output.ByObject
	if !alone {
		if m.Likeness = Likeness(&c.Change, words); h.groups.Join(m) {
			return nil
		}
	}
	text, err := what()
	if err != nil {
		return err
	}
	h.impacts(&text, &c.Change)
	text.Note = m.Origin + text.Note
	if h.overview != nil && h.crowded(text) {
		return nil
	}
	h.groups.Found(m, text)
	switch {
	case alone:
		return h.Flush()
	case len(h.groups.known) < maxGroups:
		return nil
	}
	h.parts = true
	return h.Flush()
}

// crowded reports whether a new group is left out, because there are too many to list. Of those
// before it, the failures stay.
func (h *base) crowded(text Text) bool {
	v := h.overview
	if !v.crowded && len(h.groups.known) == crowd {
		v.crowded = true
		h.groups.Keep(func(g *Group) bool { return !v.leavesOut(g.Text) })
	}
	return v.leavesOut(text)
}

// Likeness is equal for objects of a kind that are shown in the same words, and
// whose fields have the same values before and after, as far as they are shown.
func Likeness(c *engine.Change, words []byte) [32]byte {
	hash := sha256.New()
	fmt.Fprintf(hash, "%q %q %q %v %s", c.Subject.GroupKind, c.Subject.Subresource, marker(c), c.Subject.Namespace == "", words)
	for i := range c.Impacts {
		fmt.Fprintf(hash, "%q %q ", c.Impacts[i].Code, c.Impacts[i].Alike())
	}
	values := json.NewEncoder(hash)
	for _, f := range c.Fields {
		_ = values.Encode([]any{f.Kind, engine.PathString(f.Path), f.From, f.To}) // an error would be one of the diff as well
	}
	return [32]byte(hash.Sum(nil))
}

// Flush prints what is kept so far.
func (h *base) Flush() error {
	for _, section := range h.groups.Take() {
		if section.Title != "" {
			b := h.page()
			if h.printed {
				b.WriteString("\n")
			}
			b.line(Bold, h.title(section.Title))
			if err := h.write(b); err != nil {
				return err
			}
		}
		for _, g := range section.Groups {
			b := h.page()
			h.layout(h, b, g)
			if err := h.write(b); err != nil {
				return err
			}
		}
	}
	return nil
}

// group writes the heading of a group and what stands below it.
func (h *base) group(b *page, g *Group) {
	if h.printed && h.spaced {
		b.WriteString("\n")
	}
	b.line(markerColor(g.Marker), h.heading(g))
	h.below(b, g)
}

// heading names the object, or says how many there are.
func (h *base) heading(g *Group) string {
	if g.Count == 1 {
		return g.Marker + " " + g.First.String() + g.Note
	}
	return g.Marker + " " + wording.Kind(g.First) + ": " + wording.Plural(g.Count, "object") +
		placed(g.namespaces.All(), " in ", "namespaces") + placed(g.clusters.All(), " on ", "clusters") + g.Notes
}

// below writes what stands under the heading of a group.
func (h *base) below(b *page, g *Group) {
	if g.Count > 1 {
		members(b, g)
	}
	h.impactsOf(b, g)
	if g.Count > 1 && g.Several != nil {
		b.Write(g.Several)
		return
	}
	b.Write(g.Body)
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

// namespacesListed bounds the line that says where the objects are.
const namespacesListed = 8

// members names the objects of a group, or where they are.
func members(b *page, g *Group) {
	if len(g.Names) == g.Count {
		for _, name := range g.Names {
			b.line(Plain, "    "+name)
		}
		return
	}
	const expand = " (--expand lists them)"
	namespaces, clusters := g.namespaces.All(), g.clusters.All()
	if len(namespaces) < 2 && len(clusters) < 2 {
		b.line(Plain, fmt.Sprintf("    %s, %s and %d more"+expand, g.Names[0], g.Names[1], g.Count-2))
		return
	}
	if len(clusters) > 1 {
		b.line(Plain, "    on "+listed(clusters)+expand)
	}
	if len(namespaces) > 1 {
		b.line(Plain, "    in "+listed(namespaces)+expand)
	}
}

// listed lists the places that hold the most objects.
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

// shortName is "shop/web", for where the kind is known, and with a cluster "shop/web on prod".
func shortName(k engine.ObjectKey) string {
	name := strings.TrimPrefix(k.Namespace+"/"+k.Name, "/")
	if k.Cluster != "" {
		name += " on " + k.Cluster
	}
	return name
}

// origin is where an object was read on which a rule failed, to stand behind its name.
func origin(c *engine.Change) string {
	if c.Target.Origin == "" || !c.Incomplete() {
		return ""
	}
	return " (" + c.Target.Origin + ")"
}

// marker says at the beginning of a line what happens to the object.
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

// failure is the marker of an object on which a rule failed, and that does not change.
const failure = "!"

// markerColor is the colour of a marker; the marker itself says the same.
func markerColor(m string) Color {
	switch m {
	case "+":
		return Green
	case failure:
		return Red
	}
	return Bold
}

// impacts adds to what is shown of an object what the change means beyond its
// fields: in full for one object, in general for several.
func (h *base) impacts(text *Text, c *engine.Change) {
	one, several := h.page(), h.page()
	for _, impact := range c.Impacts {
		full := impact.Text
		if impact.Advice != "" {
			full += "; " + impact.Advice
		}
		h.warning(one, impact.Code, full)
		switch {
		case impact.Pods > 0: // added up
		case impact.Brief == "":
			h.warning(several, impact.Code, full)
		default:
			h.warning(several, impact.Code, impact.Brief)
		}
	}
	text.Warnings, text.Alike = one.Bytes(), several.Bytes()
}

func (h *base) warning(b *page, code engine.ImpactCode, text string) {
	b.WriteString("  ")
	b.line(Yellow, "! "+string(code)+": "+text)
}

// impactsOf writes what the changes of a group mean.
func (h *base) impactsOf(b *page, g *Group) {
	if g.Count == 1 {
		b.Write(g.Warnings)
		return
	}
	b.Write(g.Alike)
	if g.Pods > 0 {
		h.warning(b, engine.ImpactRollout, fmt.Sprintf("%s would restart in total", wording.Plural(g.Pods, "Pod")))
	}
}

// pods counts those that a change restarts.
func pods(c *engine.Change) int {
	n := 0
	for i := range c.Impacts {
		n += c.Impacts[i].Pods
	}
	return n
}

// page is text for people, and the one place where it is escaped: nothing that is
// written to it acts on a terminal or a CI runner, or forges a line.
type page struct {
	bytes.Buffer
	painter Painter
}

// line writes a text as one line.
func (p *page) line(c Color, text string) {
	p.WriteString(p.painter.Paint(c, redact.EscapeLine(text)))
	p.WriteByte('\n')
}

// diff writes a unified diff in colors. It is escaped already, so that what is
// compared is what is shown.
func (p *page) diff(unified string) {
	p.Grow(len(unified))
	for l := range strings.Lines(unified) {
		content, newline := strings.CutSuffix(l, "\n")
		p.WriteString(p.painter.Paint(lineColor(content), content))
		if newline {
			p.WriteByte('\n')
		}
	}
}

// middle leaves out the middle of a text of more bytes than that: the beginning of a rule names its policy, and the end
// of a path its field.
func middle(text string, most int) string {
	if len(text) <= most {
		return text
	}
	half := (most - len("...")) / 2
	return strings.ToValidUTF8(text[:most-len("...")-half], "") + "..." + strings.ToValidUTF8(text[len(text)-half:], "")
}

// table writes rows whose columns stand in line.
func (p *page) table(rows [][]string) {
	w := tabwriter.NewWriter(p, 0, 0, 3, ' ', 0)
	for _, row := range rows {
		fmt.Fprintln(w, strings.TrimRight(cells(row...), "\t"))
	}
	_ = w.Flush() // a page takes everything
}

// filled are the texts of a row, with another in the place of empty ones.
func filled(texts []string, empty string) []string {
	for i := range texts {
		texts[i] = cmp.Or(texts[i], empty)
	}
	return texts
}

// cells are the texts of a row whose columns a tabwriter lines up.
func cells(texts ...string) string {
	for i, text := range texts {
		texts[i] = redact.EscapeLine(text)
	}
	return strings.Join(texts, "\t")
}

// Color is what a terminal begins to write in a color with.
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

// Painter paints if it is true, and leaves texts as they are otherwise.
type Painter bool

// Paint writes a text in a color.
func (p Painter) Paint(c Color, text string) string {
	if !p || c == Plain || text == "" {
		return text
	}
	return string(c) + text + reset
}
