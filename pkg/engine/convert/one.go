package convert

import (
	"cmp"
	"slices"
	"strings"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/convert/expr"
)

// onlyFirst keeps applyRules: One, or refuses all rules: after the first rule that changes an object, no
// other applies. Rules with targets count as applied if they match.
func (c *Conversion) onlyFirst() {
	var own, others []*rule
	for _, r := range c.rules {
		if r.existing == nil {
			own = append(own, r)
		} else {
			others = append(others, r)
		}
	}
	reason := exclusive(own)
	if len(c.Refusals) > 0 && len(c.rules) > 0 {
		reason = "only one rule is applied to an object, and not all of them can be converted"
	}
	if reason = cmp.Or(reason, unlessMatched(others)); reason == "" {
		return
	}
	for _, name := range c.Rules() {
		c.Refusals = append(c.Refusals, &Refusal{
			Rule: name, Field: "spec.applyRules", Reason: reason, Instead: "write conditions that exclude each other, and applyRules: All",
		})
	}
	c.rules = nil
}

// exclusive returns why the first rule that changes an object cannot be determined.
func exclusive(rules []*rule) string {
	policies := numbered(rules)
	for i, r := range rules {
		for j, later := range rules[i+1:] {
			switch {
			case !r.sharesKind(later):
			case policies[i] != policies[i+1+j]:
				return "only one rule is applied to an object, and rules for one kind select in different ways"
			case r.changes == nil:
				return "only one rule is applied to an object, and no condition says whether rule " + r.name + " changes it"
			}
		}
	}
	return ""
}

// unlessMatched makes each rule with targets exclude objects that earlier rules match.
func unlessMatched(rules []*rule) string {
	for i, r := range rules {
		selected := r.selected()
		for _, later := range rules[i+1:] {
			switch {
			case later.index == r.index || !r.sharesKind(later):
				continue
			case r.existing.self || later.existing.self || later.selected() != selected:
				return "only one rule is applied to an object, and rules for one kind select in different ways"
			}
			before := slices.Concat(r.conditions, r.guards)
			matched := expr.And(slices.DeleteFunc(before, func(c expr.Expr) bool {
				return expr.Contains(later.conditions, c) || expr.Contains(later.guards, c)
			})...)
			if always, _ := expr.BoolOf(matched); always || later.never {
				later.never = true
				later.notes = append(later.notes, "it is never applied, because applyRules is One and rule "+r.name+" matches the same objects")
				continue
			}
			later.guards = append(later.guards, expr.Not(matched))
		}
	}
	return ""
}

// sharesKind reports whether both rules may select an object of the same kind.
func (r *rule) sharesKind(other *rule) bool {
	for _, a := range r.rules {
		for _, b := range other.rules {
			if a.kinds == nil || b.kinds == nil ||
				slices.ContainsFunc(a.Resources, func(name string) bool { return slices.Contains(b.Resources, name) }) {
				return true
			}
		}
	}
	return false
}

// changed is the condition that edits change anything; nil if unknown. Kyverno also moves the merged elements
// of a list, which is a change.
func changed(edits []*edit) expr.Expr {
	var any []expr.Expr
	for _, e := range edits {
		c := e.changes()
		if c == nil {
			return nil
		}
		any = append(any, c)
	}
	return anyOf(any)
}

func (e *edit) changes() expr.Expr {
	x, computed := e.value.(expression)
	text, isText := e.value.(string)
	switch {
	case e.unless != nil, e.elements != nil, e.remove && e.at.of.has != nil:
		return nil
	case e.remove:
		return expr.And(e.at.has)
	case e.fields != nil:
		return changed(e.fields)
	case e.ifAbsent:
		return expr.And(expr.Not(e.at.has), e.when())
	case isText && text != "", computed && x.isText() && x.when == nil:
		return expr.NotEqual(e.at.or(expr.String("")), data(e.value)) // an empty string is never written
	}
	return expr.And(e.when(), expr.Or(expr.Not(e.at.has), expr.NotEqual(e.at.plain, data(e.value))))
}

// firstChange is a single mutation with the changes of the first rule that changes anything. ok is false if
// the rules have no common form.
func firstChange(rules []*rule, simplest bool, common []expr.Expr) (m mutation, ok bool) {
	var names []string
	for i, r := range slices.Backward(rules) {
		form := r.form(simplest)
		if len(form) != 1 || i < len(rules)-1 && form[0].apply != m.apply {
			return m, false
		}
		m.apply, m.note = form[0].apply, cmp.Or(m.note, form[0].note)
		if m.cel == nil {
			m.cel = m.nothing()
		}
		when := without(slices.Concat(r.conditions, r.guards), common)
		if i < len(rules)-1 {
			when = append(when, r.changes)
		}
		m.cel = expr.Cond(expr.And(when...), form[0].cel, m.cel)
		names = append(names, r.name)
	}
	slices.Reverse(names)
	m.comment = "the first rule of " + strings.Join(names, ", ") + " that changes anything"
	return m, true
}
