package match

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/kyverno/variables"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/policydecode"
)

// Conditions are compiled preconditions: immutable and safe for concurrent use.
type Conditions struct {
	any, all []condition
	// hasAny distinguishes an empty `any`, which never holds, from a missing one, which always does.
	hasAny bool
}

type condition struct {
	key, value *variables.Template
	operator   Operator
	message    string
	place      string // such as "all[0]"
	written    string // the key in the policy, if it holds variables
}

// ParseConditions is DecodeConditions for conditions outside of a policy.
func ParseConditions(raw any) (*Conditions, error) {
	r := &policydecode.Report{Policy: "preconditions"}
	return DecodeConditions(policydecode.Node{Report: r, Value: raw}), r.Err()
}

// DecodeConditions compiles preconditions: a map of `any` and `all`, or a list, which is `all`. Missing
// conditions, which always hold, are nil, and so are invalid ones, whose error goes to the node's report.
func DecodeConditions(n policydecode.Node) *Conditions {
	if n.Value == nil {
		return nil
	}
	c, before := &Conditions{}, len(n.Report.Errs)
	switch v := n.Value.(type) {
	case []any:
		c.all = decodeList(n)
	case map[string]any:
		f := n.Fields()
		for _, name := range slices.Sorted(maps.Keys(v)) {
			switch at := f.At(name); name {
			case "any":
				c.any, c.hasAny = decodeList(at, name), at.Value != nil
			case "all":
				c.all = decodeList(at, name)
			default:
				at.Fail("unknown field; use any or all")
			}
		}
	default:
		n.Fail("must be a map of any and all, or a list, not %T", v)
	}
	if len(n.Report.Errs) > before {
		return nil
	}
	c.lint(n)
	return c
}

// child returns the node of a condition, such as "all[0]" or, in a plain list, "[0]".
func child(n policydecode.Node, place string) policydecode.Node {
	if !strings.HasPrefix(place, "[") {
		n.Path += "."
	}
	n.Path += place
	return n
}

// lint warns of conditions that hold for every object, or for none.
func (c *Conditions) lint(n policydecode.Node) {
	if c.hasAny && len(c.any) == 0 {
		child(n, "any").Lint("is an empty list, which never holds")
	}
	for _, one := range slices.Concat(c.any, c.all) {
		for _, side := range []*variables.Template{one.key, one.value} {
			if !side.Static() {
				continue
			}
			if constant, err := side.Render(nil); err == nil && one.operator.incomparable(constant) {
				child(n, one.place).Lint("never holds: nothing can be compared with %s%s", shortText(constant), incomparableHint(constant))
			}
		}
		if !one.value.Static() || !one.key.Static() {
			continue
		}
		key, _ := one.key.Render(nil)
		value, _ := one.value.Render(nil)
		often := "never"
		if one.operator.Holds(nil, key, value) {
			often = "always"
		}
		text := "key and value are constants, so this %s holds"
		if reference, isText := key.(string); isText && variables.LooksLikeVariable(reference) {
			text += fmt.Sprintf("; a variable is written {{ %s }}", reference)
		}
		child(n, one.place).Lint(text, often)
	}
	if one, clashes := clash(c.all, Equals, Equal); clashes {
		child(n, one.place).Lint("never holds together with the one before it: %s cannot have two values; any was probably meant", one.written)
	}
	if one, clashes := clash(c.any, NotEquals, NotEqual); clashes {
		child(n, one.place).Lint("always holds, or the one before it does: %s differs from one of the two values; all was probably meant", one.written)
	}
}

// clash returns a condition that compares the same key as an earlier one with another string.
func clash(list []condition, operators ...Operator) (condition, bool) {
	seen := map[string]string{}
	for _, one := range list {
		if !one.value.Static() || one.written == "" || !slices.Contains(operators, one.operator) {
			continue
		}
		rendered, _ := one.value.Render(nil)
		value, isText := rendered.(string)
		if !isText || strings.ContainsAny(value, "*?") {
			continue
		}
		if before, known := seen[one.written]; known && before != value {
			return one, true
		}
		seen[one.written] = value
	}
	return condition{}, false
}

func decodeList(n policydecode.Node, group ...string) []condition {
	var out []condition
	for i, item := range n.List() {
		c := condition{place: fmt.Sprintf("%s[%d]", strings.Join(group, ""), i)}
		if _, isMap := item.Value.(map[string]any); isMap {
			c.decode(item.Fields(), append(group[:len(group):len(group)], strconv.Itoa(i)))
		} else {
			item.Fail("must be a condition, not %s", policydecode.TypeName(item.Value))
		}
		out = append(out, c)
	}
	return out
}

func (c *condition) decode(f *policydecode.Fields, path []string) {
	for _, name := range slices.Sorted(maps.Keys(f.Values)) {
		n := f.At(name)
		text, isText := n.Value.(string)
		var err error
		switch name {
		case "key":
			c.key, err = variables.Parse(n.Value, append(path, name)...)
			if err == nil && isText && !c.key.Static() {
				c.written = strings.TrimSpace(text)
			}
		case "value":
			c.value, err = variables.Parse(n.Value, append(path, name)...)
		case "operator":
			c.operator, err = ParseOperator(text)
		case "message":
			c.message = text
		default:
			err = errors.New("unknown field; use key, operator, value or message")
		}
		if err != nil {
			n.Fail("%w", err)
		}
	}
	if _, there := f.Values["operator"]; !there {
		f.Fail("no operator")
	}
}

// Check evaluates the conditions; the error is an *UnmetError if they do not hold. `any` stops at the first
// that holds, `all` at the first that does not; both have to hold. A variable that cannot be resolved is
// another error, as in Kyverno.
func (c *Conditions) Check(s *variables.Scope) error {
	if c == nil {
		return nil
	}
	unmet, anyHolds := &UnmetError{}, !c.hasAny
	for i := range c.any {
		holds, err := c.any[i].holds(s, unmet)
		if err != nil {
			return err
		}
		if holds {
			anyHolds, unmet = true, &UnmetError{}
			break
		}
	}
	for i := range c.all {
		if holds, err := c.all[i].holds(s, unmet); err != nil || !holds {
			return cmp.Or(err, error(unmet))
		}
	}
	if !anyHolds {
		return unmet
	}
	return nil
}

// holds evaluates a condition, and adds it to unmet if it does not hold.
func (c *condition) holds(s *variables.Scope, unmet *UnmetError) (bool, error) {
	key, err := c.key.Render(s)
	if err != nil {
		return false, err
	}
	value, err := c.value.Render(s)
	if err != nil {
		return false, err
	}
	clock := s.Interpreter().Clock()
	holds := c.operator.Holds(clock, key, value)
	if !holds {
		unmet.failures = append(unmet.failures, failure{c, key, value})
	}
	return holds, clock.Steps(0)
}

// UnmetError is the error of conditions that do not hold.
type UnmetError struct {
	failures []failure // the decisive ones; none for an empty `any`
}

// failure is a condition that did not hold, with the values of its variables.
type failure struct {
	*condition
	key, value any
}

// Error describes the unmet conditions, with the values of their keys.
func (e *UnmetError) Error() string {
	if len(e.failures) == 0 {
		return "any: no condition"
	}
	reasons := make([]string, len(e.failures))
	for i, f := range e.failures {
		reasons[i] = f.String()
	}
	return strings.Join(reasons, "; ")
}

// String is like `all[0]: {{ request.object.kind }} is "Pod", wants Equals "Job"`, after the condition's
// message if it has one.
func (f failure) String() string {
	text := fmt.Sprintf("%s %s %s", shortText(f.key), f.operator, shortText(f.value))
	if f.written != "" {
		text = fmt.Sprintf("%s is %s, wants %s %s", f.written, shortText(f.key), f.operator, shortText(f.value))
	}
	if f.message != "" {
		text = f.message + " (" + text + ")"
	}
	return f.place + ": " + text
}

func shortText(value any) string {
	const most = 80
	text := fmt.Sprint(value)
	switch v := value.(type) {
	case nil:
		text = "null"
	case string:
		text = fmt.Sprintf("%q", v)
	}
	return engine.Shorten(text, most)
}
