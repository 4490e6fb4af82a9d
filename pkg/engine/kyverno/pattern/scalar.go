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

// holds reports whether a value other than a list matches a pattern other than a map or list.
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
	return false // not a JSON type
}

// isZero implements the null pattern.
func isZero(value any) bool {
	switch value {
	case nil, false, int64(0), 0, 0.0, "":
		return true
	}
	return false
}

// parseNumber parses a number of the same type as another; nil for other strings.
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
	if !strings.ContainsAny(pattern, "|&<>!-") {
		return Term{Text: strings.TrimSpace(pattern)}.holds(value) // most patterns
	}
	fails := func(terms []Term) bool {
		return !slices.ContainsFunc(terms, func(t Term) bool { return t.holds(value) })
	}
	return slices.ContainsFunc(Parse(pattern),
		func(conjuncts [][]Term) bool { return !slices.ContainsFunc(conjuncts, fails) })
}

// Term is a string with an optional operator: >=, <=, >, < or !.
type Term struct{ Operator, Text string }

// Parse parses the language of string patterns, in which `&` binds tighter than `|`: one alternative must
// hold, with all of its conjuncts, each by one of its terms.
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

// parseTerms parses a range, or a string with an operator. A single character is a plain string, so that "!"
// and ">" can be matched.
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

// CutOperator returns the operator at the start of a pattern, or "", and the rest.
func CutOperator(pattern string) (operator, rest string) {
	for _, op := range []string{">=", "<=", ">", "<", "!"} {
		if rest, found := strings.CutPrefix(pattern, op); found {
			return op, rest
		}
	}
	return "", pattern
}

// orders are the results of a comparison for which an operator holds.
//
//nolint:gochecknoglobals // an immutable table
var orders = map[string][]int{"": {0}, "!": {-1, 1}, ">": {1}, ">=": {0, 1}, "<": {-1}, "<=": {-1, 0}}

// holds compares durations, then quantities, then strings; the first that agrees decides, so `!5` holds for
// "5.0" as a string although the amounts are equal.
func (t Term) holds(value any) bool {
	if amount, ok := numberText(value); ok {
		if want, err := time.ParseDuration(t.Text); err == nil {
			got, err := time.ParseDuration(amount)
			if err == nil && slices.Contains(orders[t.Operator], cmp.Compare(got, want)) {
				return true
			}
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

// numberText returns the string to parse as an amount; null is zero.
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

// scalarText returns the string for wildcards. Floats look like 1.5E+00, as in Kyverno.
func scalarText(value any) (string, bool) {
	switch v := value.(type) {
	case nil:
		return "", false
	case float64:
		return strconv.FormatFloat(v, 'E', -1, 64), true
	}
	return Text(value)
}

// Text returns a scalar as YAML shows it without quotes, and false for a map or a list.
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

// rangeOfAmounts matches `a-b` and `a!-b`.
var rangeOfAmounts = regexp.MustCompile(`^([-+]?\d+(?:\.\d+)?[A-Za-z]*)(!?)-([-+]?\d+(?:\.\d+)?[A-Za-z]*)$`)

// ParseRange parses `a-b` (outside is false) and `a!-b` (outside is true); a and b are numbers with an
// optional unit. Blanks are not allowed.
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
