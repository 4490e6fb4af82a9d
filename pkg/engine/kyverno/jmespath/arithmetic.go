package jmespath

import (
	"errors"
	"fmt"
	"math"
	"time"

	"gopkg.in/inf.v0"
	"k8s.io/apimachinery/pkg/api/resource"
)

// Kyverno's arithmetic, on numbers, quantities ("10Mi") and durations ("90s").

// operand is exactly one of the three.
type operand struct {
	number   float64
	quantity *resource.Quantity
	duration *time.Duration
}

var (
	errTypes    = errors.New("types mismatch")
	errZero     = errors.New("zero divisor passed")
	errOperands = errors.New("invalid operands")
	errFraction = errors.New("non-integer argument(s) passed for modulo")
)

// parseOperand tries a quantity before a duration: "5m" is five thousandths.
func parseOperand(arg any) (operand, error) {
	if f, ok := Number(arg); ok {
		return operand{number: f}, nil
	}
	text, ok := arg.(string)
	if !ok {
		return operand{}, errOperands
	}
	if q, err := ParseQuantity(text); err == nil {
		return operand{quantity: &q}, nil
	}
	if d, err := time.ParseDuration(text); err == nil {
		return operand{duration: &d}, nil
	}
	return operand{}, errOperands
}

func operands(args []any) (a, b operand, err error) {
	if a, err = parseOperand(args[0]); err != nil {
		return a, b, err
	}
	b, err = parseOperand(args[1])
	return a, b, err
}

func (o *operand) negate() {
	o.number = -o.number
	if o.quantity != nil {
		o.quantity.Neg()
	}
	if o.duration != nil {
		*o.duration = -*o.duration
	}
}

func (o operand) isNumber() bool { return o.quantity == nil && o.duration == nil }

func finite(f float64) (any, error) {
	if math.IsInf(f, 0) || math.IsNaN(f) {
		return nil, errors.New("the result is out of range")
	}
	return canonical(f), nil
}

func add(_ *Interpreter, args []any) (any, error)      { return addUp(args, false) }
func subtract(_ *Interpreter, args []any) (any, error) { return addUp(args, true) }

func addUp(args []any, minus bool) (any, error) {
	if sum, ok := addIntegers(args, minus); ok {
		return sum, nil
	}
	a, b, err := operands(args)
	if minus {
		b.negate()
	}
	switch {
	case err != nil:
		return nil, err
	case a.quantity != nil && b.quantity != nil:
		a.quantity.Add(*b.quantity)
		return a.quantity.String(), nil
	case a.duration != nil && b.duration != nil:
		return (*a.duration + *b.duration).String(), nil
	case a.isNumber() && b.isNumber():
		return finite(a.number + b.number)
	}
	return nil, errTypes
}

// addIntegers is exact for two integers whose result is in range.
func addIntegers(args []any, minus bool) (result int64, exact bool) {
	a, ok := args[0].(int64)
	b, also := args[1].(int64)
	if minus {
		return a - b, ok && also && (a-b < a) == (b > 0)
	}
	return a + b, ok && also && (a+b > a) == (b > 0)
}

func multiply(_ *Interpreter, args []any) (any, error) {
	a, b, err := operands(args)
	if err != nil {
		return nil, err
	}
	if !b.isNumber() {
		a, b = b, a
	}
	switch {
	case !b.isNumber():
		return nil, errTypes
	case a.quantity != nil:
		return scaled(a.quantity, b.number, func(q, factor *inf.Dec) *inf.Dec { return new(inf.Dec).Mul(q, factor) })
	case a.duration != nil:
		return seconds(a.duration.Seconds() * b.number)
	}
	return finite(a.number * b.number)
}

func divide(_ *Interpreter, args []any) (any, error) {
	a, b, err := operands(args)
	switch {
	case err != nil:
		return nil, err
	case a.quantity != nil && b.quantity != nil:
		return quotient(a.quantity.AsApproximateFloat64(), b.quantity.AsApproximateFloat64())
	case a.duration != nil && b.duration != nil:
		return quotient(a.duration.Seconds(), b.duration.Seconds())
	case !b.isNumber():
		return nil, errTypes
	case b.number == 0:
		return nil, errZero
	case a.quantity != nil:
		return scaled(a.quantity, b.number, func(q, divisor *inf.Dec) *inf.Dec {
			return new(inf.Dec).QuoRound(q, divisor, max(q.Scale(), divisor.Scale()), inf.RoundDown)
		})
	case a.duration != nil:
		return seconds(a.duration.Seconds() / b.number)
	}
	return finite(a.number / b.number)
}

func quotient(a, b float64) (any, error) {
	if b == 0 {
		return nil, errZero
	}
	return finite(a / b)
}

// scaled computes with a quantity and a number in decimals, and keeps the
// quantity's format.
func scaled(q *resource.Quantity, by float64, compute func(q, by *inf.Dec) *inf.Dec) (any, error) {
	factor, err := ParseQuantity(fmt.Sprint(by))
	if err != nil {
		return nil, err
	}
	result := compute(q.AsDec(), factor.AsDec())
	return resource.NewDecimalQuantity(*result, q.Format).String(), nil
}

func seconds(s float64) (any, error) {
	if math.IsNaN(s) || math.Abs(s) >= math.MaxInt64/float64(time.Second) {
		return nil, errors.New("the result is out of range")
	}
	return time.Duration(s * float64(time.Second)).String(), nil
}

func modulo(_ *Interpreter, args []any) (any, error) {
	a, b, err := operands(args)
	switch {
	case err != nil:
		return nil, err
	case a.quantity != nil && b.quantity != nil:
		rest, err := remainder(a.quantity.AsApproximateFloat64(), b.quantity.AsApproximateFloat64())
		if err != nil {
			return nil, err
		}
		return resource.NewQuantity(rest, a.quantity.Format).String(), nil
	case a.duration != nil && b.duration != nil:
		if *b.duration == 0 {
			return nil, errZero
		}
		return (*a.duration % *b.duration).String(), nil
	case a.isNumber() && b.isNumber():
		return remainder(a.number, b.number)
	}
	return nil, errTypes
}

func remainder(a, b float64) (int64, error) {
	x, ok := integer(a)
	y, also := integer(b)
	if !ok || !also {
		return 0, errFraction
	}
	if y == 0 {
		return 0, errZero
	}
	return x % y, nil
}

// sum adds what add adds; the list must not be empty.
func sum(in *Interpreter, args []any) (any, error) {
	list := args[0].([]any)
	if len(list) == 0 {
		return nil, errors.New("at least one element in the array is required")
	}
	total := list[0]
	for _, item := range list[1:] {
		err := in.clock.Step()
		if err != nil {
			return nil, err
		}
		if total, err = add(in, []any{total, item}); err != nil {
			return nil, err
		}
	}
	return total, nil
}

// round goes away from zero at half.
func round(_ *Interpreter, args []any) (any, error) {
	f, _ := Number(args[0])
	digits, ok := integer(args[1])
	switch {
	case !ok:
		return nil, errors.New("non-integer length")
	case digits < 0:
		return nil, errors.New("argument #2 is out of bounds")
	}
	shift := math.Pow(10, float64(digits))
	if rounded := math.Round(f*shift) / shift; !math.IsNaN(rounded) && !math.IsInf(rounded, 0) {
		return canonical(rounded), nil
	}
	return args[0], nil // more digits than a float64 has
}
