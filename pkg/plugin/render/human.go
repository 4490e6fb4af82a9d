package render

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"strings"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/fielddiff"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/render/grouping"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/render/tally"
)

// human is what the formats for people share: colours, headings, the grouping of
// objects that change alike and the summary at the end.
type human struct {
	Options
	printed bool // there is something above
	spaced  bool // an empty line stands between two groups
	// layout writes a group, and title the heading of a section.
	layout func(*human, *bytes.Buffer, *grouping.Group)
	title  func(string) string
	groups grouping.Groups
	parts  bool // the groups had to be shown before all objects were seen
	// What the summary at the end tells besides numbers.
	skipped, warned, broken tally.Tally
	told                    int // objects with a warning, or on which a rule failed
}

func newHuman(o Options) human {
	return human{
		Options: o, spaced: o.Explain, layout: (*human).group, title: func(s string) string { return "== " + s },
		groups: grouping.Groups{By: o.GroupBy, Expand: o.Expand},
	}
}

func (h *human) paint(color, text string) string {
	if !h.Color || color == "" || text == "" {
		return text
	}
	return color + text + reset
}

// write sends out one block. A block is written at once, so that an error in it
// leaves no half of it behind.
func (h *human) write(b *bytes.Buffer) error {
	h.printed = true
	_, err := h.Out.Write(b.Bytes())
	return err
}

// begin takes note of what the summary at the end will tell of an object.
func (h *human) begin(c *engine.Change) {
	h.learn(c)
	told := len(c.Impacts) > 0
	for i := range c.Steps {
		s := &c.Steps[i]
		switch {
		case s.Outcome == engine.Skipped:
			h.skipped.Add(brief(s.Err))
		case s.Outcome.Incomplete():
			h.broken.Add(ruleText(s.Rule) + " " + string(s.Outcome) + ": " + brief(s.Err))
		}
		for _, w := range s.Warnings {
			h.warned.Add(string(w))
		}
		told = told || s.Outcome.Incomplete() || len(s.Warnings) > 0
	}
	for i := range c.Impacts {
		h.warned.Add(string(c.Impacts[i].Code) + ": " + c.Impacts[i].Alike())
	}
	if told {
		h.told++
	}
}

// brief is a reason without what it found in the one object, where the reason
// knows to tell them apart; so many objects share it.
func brief(err error) string {
	var b interface{ Brief() string }
	switch {
	case err == nil:
		return "no reason given"
	case errors.As(err, &b):
		return b.Brief()
	}
	return err.Error()
}

// shown is what a format shows of an object.
type shown struct {
	words []byte // that tell it from others
	text  func() (grouping.Text, error)
}

// show prints an object, or keeps it to print it with those that are like it.
func (h *human) show(c *engine.Change, s shown) error {
	if h.GroupBy == grouping.Object {
		text, err := s.text()
		if err != nil {
			return err
		}
		h.impacts(&text, c)
		var b bytes.Buffer
		h.layout(h, &b, &grouping.Group{Text: text, First: c.Subject, Count: 1})
		return h.write(&b)
	}
	m := grouping.Member{Subject: c.Subject, Likeness: h.likeness(c, s.words), Rules: h.rulesOf(c), Pods: pods(c)}
	if h.groups.Join(m) {
		return nil
	}
	text, err := s.text()
	if err != nil {
		return err
	}
	h.impacts(&text, c)
	h.groups.Found(m, text)
	if !h.groups.Full() {
		return nil
	}
	h.parts = true
	return h.Flush()
}

// rulesOf names the rules that an object is shown for, where that is asked.
func (h *human) rulesOf(c *engine.Change) string {
	if h.GroupBy != grouping.Policy {
		return ""
	}
	if rules := changers(c); len(rules) > 0 {
		return "changed by " + strings.Join(rules, ", ")
	}
	return "not changed"
}

// likeness is equal for objects of a kind that are shown in the same words, and
// whose fields have the same values before and after, as far as they are shown.
func (h *human) likeness(c *engine.Change, words []byte) (out [32]byte) {
	sum := sha256.New()
	fmt.Fprintf(sum, "%q %q %q %v ", c.Subject.GroupKind, c.Subject.Subresource, marker(c), c.Subject.Namespace == "")
	sum.Write(words)
	for i := range c.Impacts {
		fmt.Fprintf(sum, "%q %q ", c.Impacts[i].Code, c.Impacts[i].Alike())
	}
	for i := range c.Fields {
		h.addField(sum, c, &c.Fields[i])
	}
	sum.Sum(out[:0])
	return out
}

func (h *human) addField(sum hash.Hash, c *engine.Change, f *engine.FieldChange) {
	from, to := h.values(c, f)
	// The values are JSON's; an error would be one of the diff as well.
	text, _ := json.Marshal([]any{f.Kind, f.Path.String(), from, to})
	sum.Write(text)
}

// values are those of a field before and after, as they may be shown.
func (o *Options) values(c *engine.Change, f *engine.FieldChange) (from, to any) {
	holder := cmp.Or(c.After, c.Before)
	if f.Kind == fielddiff.Removed && c.Before != nil {
		holder = c.Before
	}
	if f.Kind == fielddiff.Moved || holder == nil { // they are places
		return f.From, f.To
	}
	return o.Masker.Value(holder, fieldNames(f.Path), f.From, f.To)
}

// Flush prints what is kept so far.
func (h *human) Flush() error {
	for _, section := range h.groups.Take() {
		if section.Title != "" {
			var b bytes.Buffer
			if h.printed {
				b.WriteString("\n")
			}
			b.WriteString(h.paint(bold, h.title(line(section.Title))) + "\n")
			if err := h.write(&b); err != nil {
				return err
			}
		}
		for _, g := range section.Groups {
			var b bytes.Buffer
			h.layout(h, &b, g)
			if err := h.write(&b); err != nil {
				return err
			}
		}
	}
	return nil
}

// group writes the heading of a group and what stands below it.
func (h *human) group(b *bytes.Buffer, g *grouping.Group) {
	if h.printed && h.spaced {
		b.WriteString("\n")
	}
	b.WriteString(h.paint(markerColor(g.Marker), h.heading(g)) + "\n")
	h.below(b, g)
}

// heading names the object, or says how many there are.
func (h *human) heading(g *grouping.Group) string {
	if g.Count == 1 {
		return g.Marker + " " + line(g.First.String()) + g.Note
	}
	return g.Marker + " " + line(kindText(g.First)) + ": " + plural(g.Count, "object") + where(g) + g.Notes
}

// below writes what is said of a group under its heading.
func (h *human) below(b *bytes.Buffer, g *grouping.Group) {
	if g.Count > 1 {
		members(b, g)
	}
	h.impactsOf(b, g)
	b.Write(g.Body)
}

// where says in how many namespaces the objects of a group are.
func where(g *grouping.Group) string {
	switch all := g.Namespaces(); len(all) {
	case 0:
		return ""
	case 1:
		return " in " + line(all[0].Name)
	default:
		return fmt.Sprintf(" in %d namespaces", len(all))
	}
}

// namespacesListed bounds the line that says where the objects are.
const namespacesListed = 8

// members names the objects of a group, or where they are.
func members(b *bytes.Buffer, g *grouping.Group) {
	if len(g.Names) == g.Count {
		for _, name := range g.Names {
			b.WriteString("    " + line(name) + "\n")
		}
		return
	}
	all := g.Namespaces()
	if len(all) < 2 {
		fmt.Fprintf(b, "    %s, %s and %d more (--expand lists them)\n", line(g.Names[0]), line(g.Names[1]), g.Count-2)
		return
	}
	parts := make([]string, 0, namespacesListed+1)
	for i, ns := range all {
		if i == namespacesListed {
			parts = append(parts, fmt.Sprintf("and %d more", len(all)-i))
			break
		}
		parts = append(parts, fmt.Sprintf("%s (%d)", line(ns.Name), ns.N))
	}
	b.WriteString("    in " + strings.Join(parts, ", ") + " (--expand lists them)\n")
}

// kindText names a kind as an object's own name does: "apps/Deployment".
func kindText(k engine.ObjectKey) string {
	return strings.TrimSuffix(engine.ObjectKey{GroupKind: k.GroupKind, Subresource: k.Subresource}.String(), " ")
}

// shortName is "shop/web", for where the kind is known.
func shortName(k engine.ObjectKey) string {
	return strings.TrimPrefix(k.Namespace+"/"+k.Name, "/")
}

// marker says at the beginning of a line what happens to the object.
func marker(c *engine.Change) string {
	switch {
	case c.Changed() && c.Before == nil:
		return "+"
	case c.Changed():
		return "~"
	case c.Incomplete():
		return "!"
	}
	return "="
}

// markerColor is the colour of a marker; the marker itself says the same.
func markerColor(m string) string {
	switch m {
	case "+":
		return green
	case "!":
		return red
	}
	return bold
}

// shown tells whether the formats that list objects list this one: one that
// differs, or of which there is something to tell.
func (o *Options) shown(c *engine.Change) bool {
	if c.Changed() || o.Explain || len(c.Impacts) > 0 {
		return true
	}
	for i := range c.Steps {
		s := &c.Steps[i]
		if s.Outcome == engine.Changed || s.Outcome.Incomplete() || len(s.Warnings) > 0 {
			return true
		}
	}
	return false
}

// tells tells whether a step that changed nothing is worth a line.
func (o *Options) tells(s *engine.Step) bool {
	return s.Outcome.Incomplete() || len(s.Warnings) > 0 || o.Explain
}
