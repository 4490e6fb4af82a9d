package match

import (
	"cmp"
	"fmt"
	"maps"
	"strconv"
	"strings"
	"time"

	"github.com/blang/semver/v4"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/kyverno/jmespath"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/limit"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/selector"
)

// Operator compares the key of a condition with its value.
type Operator string

// The operators with special handling. Equal and NotEqual are aliases; In, NotIn and the Duration family are
// deprecated in Kyverno. All work.
const (
	Equal     Operator = "Equal"
	Equals    Operator = "Equals"
	NotEqual  Operator = "NotEqual"
	NotEquals Operator = "NotEquals"
	In        Operator = "In"
	AnyIn     Operator = "AnyIn"
	AllIn     Operator = "AllIn"
	NotIn     Operator = "NotIn"
	AnyNotIn  Operator = "AnyNotIn"
	AllNotIn  Operator = "AllNotIn"
)

// operators maps names in lower case to operators.
//
//nolint:gochecknoglobals // an immutable table
var operators = func() map[string]Operator {
	table := map[string]Operator{}
	for _, o := range []Operator{
		Equal, Equals, NotEqual, NotEquals, In, AnyIn, AllIn, NotIn, AnyNotIn, AllNotIn,
		"GreaterThanOrEquals", "GreaterThan", "LessThanOrEquals", "LessThan",
		"DurationGreaterThanOrEquals", "DurationGreaterThan", "DurationLessThanOrEquals", "DurationLessThan",
	} {
		table[strings.ToLower(string(o))] = o
	}
	return table
}()

// ParseOperator finds an operator by its name in any case. (So does Kyverno, but its numeric operators then
// never hold.)
func ParseOperator(name string) (Operator, error) {
	if o, ok := operators[strings.ToLower(name)]; ok {
		return o, nil
	}
	hint := "use Equals, NotEquals, AnyIn, AllIn, AnyNotIn, AllNotIn, GreaterThan, GreaterThanOrEquals, LessThan or LessThanOrEquals"
	if strings.Contains(name, "~") {
		hint = "Equals and NotEquals know the wildcards * and ?; for a regular expression there is regex_match() in the key"
	} else if meant := engine.Nearest(name, maps.Keys(operators)); meant != "" {
		hint = fmt.Sprintf("did you mean %s?", operators[meant])
	}
	return "", fmt.Errorf("unknown operator %q; %s", name, hint)
}

// Holds applies the operator to a key and a value, like pkg/engine/variables/operator of Kyverno; but numbers
// compare by value, integers or not. A null key satisfies no operator, not even a negative one. After the
// clock's time has passed, which its error says, the result is meaningless.
func (o Operator) Holds(clock *limit.Clock, key, value any) bool {
	switch is := string(o); {
	case key == nil:
		return false
	case o == Equal, o == Equals:
		return equals(clock, key, value)
	case o == NotEqual, o == NotEquals:
		return !equals(clock, key, value)
	case strings.HasSuffix(is, "In"):
		return o.member(clock, key, value)
	case strings.HasPrefix(is, "Duration"):
		k, ok := seconds(key) // numbers are seconds, on both sides
		v, also := seconds(value)
		return ok && also && o.holdsFor(cmp.Compare(k, v))
	}
	return o.order(key, value)
}

func equals(clock *limit.Clock, key, value any) bool {
	if text, isText := key.(string); isText {
		return equalsText(text, value)
	}
	k, isNumber := jmespath.Number(key)
	if text, isText := value.(string); isNumber && isText {
		v, ok := parseNumber(text)
		return ok && k == v
	}
	return jmespath.Equal(clock, key, value)
}

// equalsText compares strings as durations, then as quantities, then a wildcard pattern (the value) with a
// string (the key). A key that is a quantity never matches a pattern.
func equalsText(key string, value any) bool {
	if k, v, ok := durations(key, value); ok {
		return k == v
	}
	text, isText := value.(string)
	if k, err := jmespath.ParseQuantity(key); err == nil && isText && text != "" {
		v, err := jmespath.ParseQuantity(text)
		return err == nil && k.Cmp(v) == 0
	}
	return isText && selector.MatchWildcard(text, key)
}

func (o Operator) holdsFor(order int) bool {
	switch is := string(o); {
	case order == 0:
		return strings.HasSuffix(is, "OrEquals")
	case order > 0:
		return strings.Contains(is, "GreaterThan")
	default:
		return strings.Contains(is, "LessThan")
	}
}

// order compares durations, then quantities, numbers and versions; unordered values satisfy no operator.
func (o Operator) order(key, value any) bool {
	if k, v, ok := durations(key, value); ok {
		return o.holdsFor(cmp.Compare(k, v))
	}
	keyText, isText := key.(string)
	valueText, also := value.(string)
	texts := isText && also
	if texts {
		k, err := jmespath.ParseQuantity(keyText)
		v, wrong := jmespath.ParseQuantity(valueText)
		if err == nil && wrong == nil {
			return o.holdsFor(k.Cmp(v))
		}
	}
	if k, ok := anyNumber(key); ok {
		v, ok := anyNumber(value)
		if !ok && texts { // a key that is a number is in seconds if the value is a duration
			v, ok = seconds(value)
			k, _ = seconds(k)
		}
		return ok && o.holdsFor(cmp.Compare(k, v))
	}
	k, err := semver.Parse(keyText)
	v, wrong := semver.Parse(valueText)
	return texts && err == nil && wrong == nil && o.holdsFor(k.Compare(v))
}

// incomparable reports whether nothing can satisfy an operator with this value on one side, for lack of an
// order.
func (o Operator) incomparable(value any) bool {
	text, isText := value.(string)
	_, isDuration := seconds(value)
	switch is := string(o); {
	case !strings.Contains(is, "Than"), value == nil, isDuration:
		return false
	case strings.HasPrefix(is, "Duration"):
		return true
	}
	_, isNumber := anyNumber(value)
	_, notQuantity := jmespath.ParseQuantity(text)
	_, notVersion := semver.Parse(text)
	return !isNumber && (!isText || notQuantity != nil && notVersion != nil)
}

// incomparableHint suggests a replacement for an incomparable value, after "; ".
func incomparableHint(value any) string {
	text, _ := value.(string)
	for _, meant := range []string{
		strings.ReplaceAll(text, " ", ""),
		strings.TrimSuffix(strings.ReplaceAll(text, " ", ""), "B"),
	} {
		if _, err := jmespath.ParseQuantity(meant); err == nil {
			return fmt.Sprintf("; did you mean %q?", meant)
		}
	}
	if days, err := strconv.Atoi(strings.TrimSuffix(text, "d")); err == nil && strings.HasSuffix(text, "d") {
		return fmt.Sprintf("; did you mean %q?", fmt.Sprintf("%dh", days*24))
	}
	return "; use a number, a quantity such as 10Gi, a duration such as 1h30m, or a version such as 1.2.3"
}

// durations reads both sides as seconds if at least one is a duration string other than "0".
func durations(key, value any) (k, v float64, ok bool) {
	_, keyIsText := key.(string)
	_, valueIsText := value.(string)
	if key == any("0") || value == any("0") || !keyIsText && !valueIsText {
		return 0, 0, false
	}
	k, ok = seconds(key)
	v, also := seconds(value)
	return k, v, ok && also
}

// seconds reads a duration or a number of whole seconds, which overflows like Kyverno's if it is large.
func seconds(side any) (float64, bool) {
	text, ok := side.(string)
	if !ok {
		n, ok := jmespath.Number(side)
		return (time.Duration(n) * time.Second).Seconds(), ok
	}
	d, err := time.ParseDuration(text)
	return d.Seconds(), err == nil
}

func parseNumber(text string) (float64, bool) {
	f, err := strconv.ParseFloat(text, 64)
	return f, err == nil && f == f // NaN equals nothing
}

func anyNumber(value any) (float64, bool) {
	if text, ok := value.(string); ok {
		return parseNumber(text)
	}
	return jmespath.Number(value)
}
