package match

import (
	"cmp"
	"strconv"

	"github.com/blang/semver/v4"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/kyverno/jmespath"
)

// holdsFor reports whether an order of key and value is what the operator asks for.
func (o Operator) holdsFor(order int) bool {
	switch o {
	case GreaterThanOrEquals, DurationGreaterThanOrEquals:
		return order >= 0
	case GreaterThan, DurationGreaterThan:
		return order > 0
	case LessThanOrEquals, DurationLessThanOrEquals:
		return order <= 0
	case LessThan, DurationLessThan:
		return order < 0
	}
	return false
}

// order tries durations, then quantities, numbers and versions; what has no
// order satisfies no operator.
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
		return ok && o.holdsFor(cmp.Compare(k, v))
	}
	k, err := semver.Parse(keyText)
	v, wrong := semver.Parse(valueText)
	return texts && err == nil && wrong == nil && o.holdsFor(k.Compare(v))
}

// orderDurations takes numbers for seconds, on both sides.
func (o Operator) orderDurations(key, value any) bool {
	k, ok := seconds(key)
	v, also := seconds(value)
	return ok && also && o.holdsFor(cmp.Compare(k, v))
}

// durations reads both sides as seconds, if at least one of the two is a text that is a duration, "0" not counting as one.
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

func seconds(side any) (float64, bool) {
	text, ok := side.(string)
	if !ok {
		return jmespath.Number(side)
	}
	d, ok := jmespath.ParseDuration(text)
	return d.Seconds(), ok
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
