package match

import (
	"fmt"
	"strings"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/kyverno/jmespath"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/selector"
)

// Operator compares the key of a condition with its value.
type Operator string

// The operators. Equal and NotEqual are other names, In, NotIn and the Duration
// family are deprecated in Kyverno, and all work.
const (
	Equal                       Operator = "Equal"
	Equals                      Operator = "Equals"
	NotEqual                    Operator = "NotEqual"
	NotEquals                   Operator = "NotEquals"
	In                          Operator = "In"
	AnyIn                       Operator = "AnyIn"
	AllIn                       Operator = "AllIn"
	NotIn                       Operator = "NotIn"
	AnyNotIn                    Operator = "AnyNotIn"
	AllNotIn                    Operator = "AllNotIn"
	GreaterThanOrEquals         Operator = "GreaterThanOrEquals"
	GreaterThan                 Operator = "GreaterThan"
	LessThanOrEquals            Operator = "LessThanOrEquals"
	LessThan                    Operator = "LessThan"
	DurationGreaterThanOrEquals Operator = "DurationGreaterThanOrEquals"
	DurationGreaterThan         Operator = "DurationGreaterThan"
	DurationLessThanOrEquals    Operator = "DurationLessThanOrEquals"
	DurationLessThan            Operator = "DurationLessThan"
)

// operators is every operator by its name in lower case.
//
//nolint:gochecknoglobals // an immutable table
var operators = byOperatorName(
	Equal, Equals, NotEqual, NotEquals, In, AnyIn, AllIn, NotIn, AnyNotIn, AllNotIn,
	GreaterThanOrEquals, GreaterThan, LessThanOrEquals, LessThan,
	DurationGreaterThanOrEquals, DurationGreaterThan, DurationLessThanOrEquals, DurationLessThan,
)

func byOperatorName(all ...Operator) map[string]Operator {
	table := make(map[string]Operator, len(all))
	for _, o := range all {
		table[strings.ToLower(string(o))] = o
	}
	return table
}

// ParseOperator finds an operator by its name in any case. (Kyverno too, though
// its numeric operators then never hold.)
func ParseOperator(name string) (Operator, error) {
	if o, ok := operators[strings.ToLower(name)]; ok {
		return o, nil
	}
	return "", fmt.Errorf("unknown operator %q", name)
}

// Holds compares a key with a value, as pkg/engine/variables/operator of Kyverno
// does; but numbers compare by value whether or not they are integers. A key that
// is null satisfies no operator, not even the negative ones.
func (o Operator) Holds(key, value any) bool {
	if key == nil {
		return false
	}
	switch o {
	case Equal, Equals:
		return equals(key, value)
	case NotEqual, NotEquals:
		return !equals(key, value)
	case In, AnyIn, AllIn, NotIn, AnyNotIn, AllNotIn:
		return o.member(key, value)
	case DurationGreaterThanOrEquals, DurationGreaterThan, DurationLessThanOrEquals, DurationLessThan:
		return o.compareDurations(key, value)
	}
	return o.compare(key, value)
}

func equals(key, value any) bool {
	switch k := key.(type) {
	case string:
		return equalsText(k, value)
	case bool, []any, map[string]any:
		return jmespath.Equal(key, value)
	}
	k, ok := jmespath.Number(key)
	if !ok {
		return false
	}
	if text, ok := value.(string); ok {
		v, ok := parseNumber(text)
		return ok && k == v
	}
	return jmespath.Equal(key, value)
}

// equalsText takes texts for durations, then for quantities, then for a wildcard
// pattern (the value) and a text (the key). A key that is a quantity never
// matches a pattern.
func equalsText(key string, value any) bool {
	if k, v, ok := durations(key, value); ok {
		return k == v
	}
	text, ok := value.(string)
	if !ok {
		return false
	}
	if k, err := jmespath.ParseQuantity(key); err == nil && text != "" {
		v, err := jmespath.ParseQuantity(text)
		return err == nil && k.Cmp(v) == 0
	}
	return selector.MatchWildcard(text, key)
}
