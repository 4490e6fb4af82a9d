package match

import (
	"cmp"
	"strconv"
	"time"

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

// compare tries durations, then quantities, numbers and versions; what has no
// order satisfies no operator.
func (o Operator) compare(key, value any) bool {
	if k, v, ok := durations(key, value); ok {
		return o.holdsFor(cmp.Compare(k, v))
	}
	keyText, keyIsText := key.(string)
	valueText, valueIsText := value.(string)
	if keyIsText && valueIsText {
		if k, err := jmespath.ParseQuantity(keyText); err == nil {
			if v, err := jmespath.ParseQuantity(valueText); err == nil {
				return o.holdsFor(k.Cmp(v))
			}
		}
	}
	k, keyIsNumber := anyNumber(key)
	v, valueIsNumber := anyNumber(value)
	if keyIsNumber {
		return valueIsNumber && o.holdsFor(cmp.Compare(k, v))
	}
	if keyIsText && valueIsText {
		return o.compareVersions(keyText, valueText)
	}
	return false
}

func (o Operator) compareVersions(key, value string) bool {
	k, err := semver.Parse(key)
	if err != nil {
		return false
	}
	v, err := semver.Parse(value)
	return err == nil && o.holdsFor(k.Compare(v))
}

// compareDurations takes numbers for seconds, on both sides.
func (o Operator) compareDurations(key, value any) bool {
	k, ok := seconds(key)
	v, also := seconds(value)
	return ok && also && o.holdsFor(cmp.Compare(k, v))
}

// durations reads both sides as seconds if at least one is a text that is a
// duration, "0" not counting as one.
func durations(key, value any) (k, v float64, ok bool) {
	if !isDuration(key) && !isDuration(value) || key == "0" || value == "0" {
		return 0, 0, false
	}
	k, ok = seconds(key)
	v, also := seconds(value)
	return k, v, ok && also
}

func isDuration(side any) bool {
	text, ok := side.(string)
	if !ok {
		return false
	}
	_, err := time.ParseDuration(text)
	return err == nil
}

func seconds(side any) (float64, bool) {
	if text, ok := side.(string); ok {
		d, err := time.ParseDuration(text)
		return d.Seconds(), err == nil
	}
	return jmespath.Number(side)
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
