package pattern

import (
	"cmp"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/kyverno/jmespath"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/selector"
)

// holds reports whether a value that is not a list matches a pattern that is neither a map nor a list.
func holds(pattern, value any) bool {
	switch p := pattern.(type) {
	case nil:
		return isZero(value)
	case bool:
		return value == any(p)
	case int64, int, float64:
		if text, isText := value.(string); isText {
			value = parseNumber(text, p)
		}
		return jmespath.Equal(nil, p, value)
	case string:
		return holdsText(p, value)
	}
	return false // of a type that JSON does not have
}

// isZero is what a null pattern asks for.
func isZero(value any) bool {
	switch value {
	case nil, false, int64(0), 0, 0.0, "":
		return true
	}
	return false
}

// parseNumber reads a number like another one, a float or not; a string that is none is null.
func parseNumber(text string, like any) any {
	if _, isFloat := like.(float64); isFloat {
		if f, err := strconv.ParseFloat(text, 64); err == nil {
			return f
		}
	} else if n, err := strconv.ParseInt(text, 10, 64); err == nil {
		return n
	}
	return nil
}

func holdsText(pattern string, value any) bool {
	if value == any(pattern) {
		return true
	}
	fails := func(terms []Term) bool {
		return !slices.ContainsFunc(terms, func(t Term) bool { return t.holds(value) })
	}
	return slices.ContainsFunc(Parse(pattern),
		func(conjuncts [][]Term) bool { return !slices.ContainsFunc(conjuncts, fails) })
}

// Term is a string behind an operator: one of >=, <=, >, < and !, or none.
type Term struct{ Operator, Text string }

// Parse reads the little language of text patterns, in which `|` binds weaker than `&`: of the alternatives
// one must hold, of the conjuncts of an alternative all, and of the terms of a conjunct one.
func Parse(pattern string) [][][]Term {
	var alternatives [][][]Term
	for alternative := range strings.SplitSeq(pattern, "|") {
		var conjuncts [][]Term
		for conjunct := range strings.SplitSeq(alternative, "&") {
			conjuncts = append(conjuncts, parseTerms(strings.Trim(conjunct, " "))...)
		}
		alternatives = append(alternatives, conjuncts)
	}
	return alternatives
}

// parseTerms reads a range, or a string behind an operator. A single character is always
// text, so that "!" and ">" can be matched.
func parseTerms(text string) (conjuncts [][]Term) {
	low, high, outside, isRange := ParseRange(text)
	switch {
	case outside:
		return [][]Term{{{"<", low}, {">", high}}}
	case isRange:
		return [][]Term{{{">=", low}}, {{"<=", high}}}
	}
	op, behind := CutOperator(text)
	if len(text) == 1 {
		op, behind = "", text
	}
	return [][]Term{{{op, strings.TrimSpace(behind)}}}
}

// CutOperator returns the operator with which a pattern begins, or "", and what follows it.
func CutOperator(pattern string) (operator, rest string) {
	for _, op := range []string{">=", "<=", ">", "<", "!"} {
		if rest, found := strings.CutPrefix(pattern, op); found {
			return op, rest
		}
	}
	return "", pattern
}

// orders are those of value and text that an operator holds for.
//
//nolint:gochecknoglobals // an immutable table
var orders = map[string][]int{"": {0}, "!": {-1, 1}, ">": {1}, ">=": {0, 1}, "<": {-1}, "<=": {-1, 0}}

// holds tries durations, then quantities, then text; the first that agrees
// decides, so that `!5` holds for "5.0" as text although the amounts agree.
func (t Term) holds(value any) bool {
	if amount, ok := numberText(value); ok {
		want, err := time.ParseDuration(t.Text)
		got, other := time.ParseDuration(amount)
		if err == nil && other == nil && slices.Contains(orders[t.Operator], cmp.Compare(got, want)) {
			return true
		}
		if want, err := jmespath.ParseQuantity(t.Text); err == nil {
			got, err := jmespath.ParseQuantity(amount)
			if err == nil && slices.Contains(orders[t.Operator], got.Cmp(want)) {
				return true
			}
		}
	}
	shown, ok := scalarText(value)
	return ok && (t.Operator == "" || t.Operator == "!") &&
		selector.MatchWildcard(t.Text, shown) == (t.Operator == "")
}

// numberText is the text that is read as an amount; null counts as zero.
func numberText(value any) (string, bool) {
	switch v := value.(type) {
	case nil:
		return "0", true
	case bool:
		return "", false
	case float64:
		return strconv.FormatFloat(v, 'f', 6, 64), true
	}
	return Text(value)
}

// scalarText is the text that wildcards see. Floats look like 1.5E+00 there, as
// they do in Kyverno.
func scalarText(value any) (string, bool) {
	switch v := value.(type) {
	case nil:
		return "", false
	case float64:
		return strconv.FormatFloat(v, 'E', -1, 64), true
	}
	return Text(value)
}

// Text is a scalar as YAML shows it without quotes, and false for a map or a list.
func Text(value any) (string, bool) {
	switch v := value.(type) {
	case nil:
		return "null", true
	case string:
		return v, true
	case bool:
		return strconv.FormatBool(v), true
	case int64:
		return strconv.FormatInt(v, 10), true
	case int:
		return strconv.Itoa(v), true
	case float64:
		text, err := jmespath.ToJSON(v)
		return text, err == nil
	default:
		return "", false
	}
}

// rangeOfAmounts is `a-b` or `a!-b`.
var rangeOfAmounts = regexp.MustCompile(`^([-+]?\d+(?:\.\d+)?[A-Za-z]*)(!?)-([-+]?\d+(?:\.\d+)?[A-Za-z]*)$`)

// ParseRange reads `a-b` (outside is false) and `a!-b` (outside is true), where
// a and b are numbers that a unit may follow. Blanks are not allowed.
func ParseRange(term string) (low, high string, outside, ok bool) {
	if !strings.Contains(term, "-") {
		return "", "", false, false
	}
	parts := rangeOfAmounts.FindStringSubmatch(term)
	if parts == nil {
		return "", "", false, false
	}
	return parts[1], parts[3], parts[2] != "", true
}
