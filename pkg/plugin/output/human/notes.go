package human

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/wording"
)

// fieldsListed is the maximum number of fields listed for a rule; the diff has all.
const fieldsListed = 20

// notes writes what follows the heading of an object: the rules with the fields that they changed, and those
// that failed or warn; with Explain, every rule.
func (h *base) notes(b *page, c *part) {
	if h.Explain {
		h.trace(b, &c.Change)
		return
	}
	for _, w := range writers(&c.Change) {
		h.writer(b, w)
	}
	noted := h.noted(&c.Change)
	for i := range c.Steps {
		if s := &c.Steps[i]; noted[s] > 0 {
			h.step(b, s, noted[s])
		}
	}
	if others := c.byOthers(); others != "" {
		b.line(Plain, "  "+others)
	}
}

// writer is a rule that changed the object, and the fields that it wrote last.
type writer struct {
	rule   engine.RuleRef
	steps  []*engine.Step
	fields []engine.FieldChange
}

// writers returns the rules that changed the object, in their order.
func writers(c *engine.Change) []*writer {
	var out []*writer
	places := map[engine.RuleRef]*writer{}
	of := func(r engine.RuleRef) *writer {
		w := places[r]
		if w == nil {
			w = &writer{rule: r}
			places[r] = w
			out = append(out, w)
		}
		return w
	}
	for i := range c.Steps {
		if s := &c.Steps[i]; s.Outcome == engine.Changed {
			w := of(s.Rule)
			w.steps = append(w.steps, s)
		}
	}
	for i := range c.Fields {
		w := of(c.Fields[i].Rule())
		w.fields = append(w.fields, c.Fields[i])
	}
	return out
}

func (h *base) writer(b *page, w *writer) {
	text := "  " + wording.Rule(w.rule)
	seen := map[string]bool{}
	triggers := 0
	for _, s := range w.steps {
		for _, label := range h.labels(s) {
			if seen[label] {
				continue
			}
			seen[label] = true
			if strings.HasPrefix(label, triggeredBy) {
				if triggers++; triggers > triggersListed {
					continue
				}
			}
			text += " (" + label + ")"
		}
	}
	if more := triggers - triggersListed; more > 0 {
		text += " (and by " + wording.PluralNumber(more, "other") + ")"
	}
	if len(w.fields) == 0 {
		text += " (" + nothingLeft + ")"
	}
	b.line(Plain, text)
	h.fields(b, w.fields, "    ")
	for _, s := range w.steps {
		for _, warning := range s.Warnings {
			if !seen[string(warning)] {
				seen[string(warning)] = true
				h.warnings(b, []engine.Warning{warning})
			}
		}
	}
}

const nothingLeft = "all of it was reverted or overwritten by later rules"

func (h *base) fields(b *page, fields []engine.FieldChange, indent string) {
	fields, records := engine.SplitRecords(fields)
	defer func() {
		if len(records) > 0 {
			b.line(Plain, indent+"  noted in the annotation "+engine.AppliedPatches)
		}
	}()
	for i, f := range fields {
		if i == fieldsListed {
			fmt.Fprintf(b, "%s  and %s more\n", indent, wording.Plural(len(fields)-i, "field"))
			return
		}
		b.line(Plain, indent+fieldMarker(f.Kind)+" "+h.path(f))
	}
}

func fieldMarker(k engine.ChangeKind) string {
	switch k {
	case engine.Added:
		return "+"
	case engine.Removed:
		return "-"
	case engine.Moved:
		return ">"
	}
	return "~"
}

// path returns the name of a field with what its values do not say: where it moved, that "8080" and 8080
// differ, and how much is removed with it.
func (h *base) path(f engine.FieldChange) string {
	text := engine.PathString(f.Path)
	if text == "" {
		text = "(the whole object)"
	}
	switch from, to := typeName(f.From), typeName(f.To); {
	case f.Kind == engine.Removed:
		if n := size(f.From); n > 1 {
			text += " (" + wording.Plural(n, "field") + ")"
		}
	case f.Kind == engine.Moved:
		text += fmt.Sprintf(" (from place %v to %v)", f.From, f.To)
	case f.Kind == engine.Replaced && from != to:
		text += " (" + from + " becomes " + to + ")"
	}
	return text
}

// size counts the leaf fields of a value.
func size(v any) int {
	n := 0
	switch v := v.(type) {
	case map[string]any:
		for _, below := range v {
			n += size(below)
		}
	case []any:
		for _, below := range v {
			n += size(below)
		}
	}
	return max(n, 1)
}

// typeName returns JSON's name for the type of a value.
func typeName(v any) string {
	switch v.(type) {
	case nil:
		return "null"
	case string:
		return "string"
	case bool:
		return "boolean"
	case map[string]any:
		return "object"
	case []any:
		return "list"
	}
	return "number"
}

// noted returns the steps that get a line although they did not change the object, with the number of
// triggers: several triggers with the same result share a line.
func (h *base) noted(c *engine.Change) map[*engine.Step]int {
	out := map[*engine.Step]int{}
	first := map[string]*engine.Step{}
	for i := range c.Steps {
		s := &c.Steps[i]
		if s.Outcome == engine.Changed || !s.Outcome.Incomplete() && len(s.Warnings) == 0 && !h.Explain {
			continue
		}
		if s.TriggeredBy != nil {
			text := fmt.Sprint(s.Rule, s.Outcome, h.reason(s), s.Warnings)
			if alike := first[text]; alike != nil {
				out[alike]++
				continue
			}
			first[text] = s
		}
		out[s] = 1
	}
	return out
}

const triggeredBy = "triggered by "

// triggersListed is the maximum number of triggers in the line of a rule.
const triggersListed = 3

// labels returns what a reader must know about a step that changed something.
func (h *base) labels(s *engine.Step) []string {
	var out []string
	if s.AsCreated {
		out = append(out, "as if created")
	}
	if s.NotIdempotent != "" {
		out = append(out, "not idempotent: "+s.NotIdempotent)
	}
	if s.TriggeredBy != nil {
		out = append(out, triggeredBy+wording.Trigger(s))
	}
	return out
}

// reason returns why a step did not change anything.
func (h *base) reason(s *engine.Step) string {
	if s.Err == nil {
		return ""
	}
	return h.text(s.Err.Error())
}

// text returns a string about an object as it is shown.
func (h *base) text(s string) string { return wording.WithoutName(s, h.nameless) }

// several returns what write prints of an object among similar ones: the same as one, without its name.
func (h *base) several(one *page, c *part, write func(*page, *part)) *page {
	remarked := c.Incomplete() ||
		slices.ContainsFunc(c.Steps, func(s engine.Step) bool { return len(s.Warnings) > 0 })
	if h.Explain || !remarked {
		return one
	}
	h.nameless = c.Subject
	defer func() { h.nameless = engine.ObjectKey{} }()
	b := h.page()
	write(b, c)
	return b
}

// step writes the line of a step that did not change the object, for a number of triggers.
func (h *base) step(b *page, s *engine.Step, triggers int) {
	mark, paint := " ", Plain
	if s.Outcome.Incomplete() {
		mark, paint = "!", Red
	}
	text := fmt.Sprintf("  %s %s %s", mark, wording.Rule(s.Rule), s.Outcome)
	if triggers > 1 {
		text += " for " + wording.PluralNumber(triggers, "trigger")
	}
	if reason := h.reason(s); reason != "" {
		text += ": " + reason
	}
	b.line(paint, text)
	h.warnings(b, s.Warnings)
}

func (h *base) warnings(b *page, warnings []engine.Warning) {
	for _, w := range warnings {
		b.line(Yellow, "    warning: "+h.text(string(w)))
	}
}

// trace writes what every rule did to an object, policy by policy in the order in which they ran, each with
// its reason.
func (h *base) trace(b *page, c *engine.Change) {
	if len(c.Steps) == 0 {
		b.WriteString("  no rule was evaluated for it\n")
	}
	var last engine.RuleRef
	var derived []*engine.Step
	noted := h.noted(c)
	for i := range c.Steps {
		s := &c.Steps[i]
		if s.Outcome != engine.Changed && noted[s] == 0 {
			continue
		}
		policy := s.Rule
		policy.Rule = ""
		if i == 0 || policy != last {
			h.traceDerived(b, derived)
			last, derived = policy, nil
			text := "  " + wording.Rule(policy)
			if policy.Origin != "" {
				text += " (" + policy.Origin + ")"
			}
			b.line(Plain, text)
		}
		if derivedForOthers(s) {
			derived = append(derived, s)
			continue
		}
		h.traceStep(b, s, noted[s])
	}
	h.traceDerived(b, derived)
}

// derivedForOthers reports whether Kyverno's autogen derived the rule for other kinds than the object's.
func derivedForOthers(s *engine.Step) bool {
	var m engine.Mismatch
	return s.Outcome == engine.NotMatched && strings.HasPrefix(s.Rule.Rule, "autogen-") &&
		errors.As(s.Err, &m) &&
		(strings.HasSuffix(m.Criterion, "kinds") || m.Criterion == "resourceRules")
}

// traceDerived writes one line for the rules that autogen derived for other kinds.
func (h *base) traceDerived(b *page, steps []*engine.Step) {
	if len(steps) == 0 {
		return
	}
	names := make([]string, len(steps))
	for i, s := range steps {
		names[i] = s.Rule.Rule
	}
	b.line(Plain, "      derived for other kinds: "+engine.Few(names))
}

func (h *base) traceStep(b *page, s *engine.Step, triggers int) {
	mark, paint := " ", Plain
	switch {
	case s.Outcome == engine.Changed:
		mark, paint = "~", Bold
	case s.Outcome.Incomplete():
		mark, paint = "!", Red
	case s.Outcome == engine.Unchanged:
		mark = "="
	}
	text := "    " + mark + " "
	if s.Rule.Rule != "" {
		text += s.Rule.Rule + ": "
	}
	text += h.outcome(s)
	if s.Outcome != engine.NotMatched {
		for _, label := range h.labels(s) {
			text += " (" + label + ")"
		}
		if triggers > 1 {
			text += " (and by " + wording.PluralNumber(triggers-1, "other") + ")"
		}
	}
	b.line(paint, text)
	h.fields(b, s.Fields, "        ")
	h.warnings(b, s.Warnings)
}

// outcome returns the outcome of a step in words, with its reason.
func (h *base) outcome(s *engine.Step) string {
	text := string(s.Outcome)
	if s.Again != "" {
		if text = "again, after " + s.Again + ": " + text; s.Outcome == engine.Unchanged {
			text = "again, after " + s.Again + ": nothing left to do"
		}
	}
	if s.Outcome == engine.NotMatched {
		text = "does not match"
		if s.TriggeredBy != nil {
			text = "does not match as a trigger"
		}
	}
	if reason := h.reason(s); reason != "" {
		return text + ": " + reason
	}
	if s.Outcome == engine.Unchanged && s.Again == "" {
		return text + ": the object already has what the rule sets"
	}
	return text
}
