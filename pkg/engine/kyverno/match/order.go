package match

import (
	"cmp"
	"strconv"
	"strings"
	"time"

	"github.com/blang/semver/v4"
	"k8s.io/apimachinery/pkg/api/resource"

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

// amounts is a value as the amounts that it can be.
type amounts struct {
	seconds    float64
	isSeconds  bool // a number counts as seconds
	isDuration bool // a text that is a duration
	quantity   resource.Quantity
	isQuantity bool
	number     float64
	isNumber   bool
}

func amountsOf(value any) amounts {
	var a amounts
	a.seconds, a.isSeconds = seconds(value)
	text, isText := value.(string)
	a.isDuration = isText && a.isSeconds
	if isText {
		quantity, err := jmespath.ParseQuantity(text)
		a.quantity, a.isQuantity = quantity, err == nil
	}
	a.number, a.isNumber = anyNumber(value)
	return a
}

// order tries durations, then quantities, numbers and versions; what has no
// order satisfies no operator.
func (c *comparison) order(key any) bool {
	o := c.operator
	if k, ok := c.durationBeside(key); ok {
		return o.holdsFor(cmp.Compare(k, c.seconds))
	}
	text, isText := key.(string)
	if isText && c.isQuantity {
		if k, err := jmespath.ParseQuantity(text); err == nil {
			return o.holdsFor(k.Cmp(c.quantity))
		}
	}
	if k, ok := anyNumber(key); ok {
		return c.isNumber && o.holdsFor(cmp.Compare(k, c.number))
	}
	return isText && c.isText && o.compareVersions(text, c.text)
}

func (o Operator) compareVersions(key, value string) bool {
	k, err := semver.Parse(key)
	if err != nil {
		return false
	}
	v, err := semver.Parse(value)
	return err == nil && o.holdsFor(k.Compare(v))
}

// orderDurations takes numbers for seconds, on both sides.
func (c *comparison) orderDurations(key any) bool {
	k, ok := seconds(key)
	return ok && c.isSeconds && c.operator.holdsFor(cmp.Compare(k, c.seconds))
}

// durationBeside reads a key as seconds, to be compared with those of the value, if
// at least one of the two is a text that is a duration, "0" not counting as one.
func (c *comparison) durationBeside(key any) (float64, bool) {
	if !c.isSeconds || key == "0" || c.text == "0" {
		return 0, false
	}
	_, isText := key.(string)
	if !isText && !c.isDuration {
		return 0, false
	}
	return seconds(key)
}

func seconds(side any) (float64, bool) {
	text, ok := side.(string)
	if !ok {
		return jmespath.Number(side)
	}
	if text == "" || strings.IndexByte("+-.0123456789", text[0]) < 0 {
		return 0, false // without the cost of an error
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
