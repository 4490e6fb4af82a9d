package jmespath

import (
	"errors"
	"fmt"
	"math"
	"reflect"
	"time"

	"gopkg.in/inf.v0"
	"k8s.io/apimachinery/pkg/api/resource"
)

// Kyverno's arithmetic on operands: numbers (float64), quantities ("10Mi", *resource.Quantity) and durations
// ("90s", time.Duration).

var (
	errTypes    = errors.New("types mismatch")
	errZero     = errors.New("zero divisor passed")
	errOperands = errors.New("invalid operands")
	errRange    = errors.New("the result is out of range")
)

func onOperands(call func(a, b any) (any, error)) func(*Interpreter, []any) (any, error) {
	return func(_ *Interpreter, args []any) (any, error) {
		a, err := parseOperand(args[0])
		if err != nil {
			return nil, err
		}
		b, err := parseOperand(args[1])
		if err != nil {
			return nil, err
		}
		return call(a, b)
	}
}

// parseOperand tries a quantity before a duration: "5m" is five thousandths.
func parseOperand(arg any) (any, error) {
	if f, ok := Number(arg); ok {
		return f, nil
	}
	text, ok := arg.(string)
	if !ok {
		return nil, errOperands
	}
	if q, err := ParseQuantity(text); err == nil {
		return &q, nil
	}
	if d, err := time.ParseDuration(text); err == nil {
		return d, nil
	}
	return nil, errOperands
}

// amount returns an operand as a number; a duration in seconds.
func amount(operand any) float64 {
	switch o := operand.(type) {
	case *resource.Quantity:
		return o.AsApproximateFloat64()
	case time.Duration:
		return o.Seconds()
	}
	return operand.(float64)
}

func sameType(a, b any) bool { return reflect.TypeOf(a) == reflect.TypeOf(b) }

// finite refuses numbers that JSON cannot represent; Kyverno fails when it writes them.
func finite(f float64) (any, error) {
	if math.IsInf(f, 0) || math.IsNaN(f) {
		return nil, errRange
	}
	return canonical(f), nil
}

// add adds the second argument, or subtracts it if the sign is -1.
func add(sign int64) func(*Interpreter, []any) (any, error) {
	return onOperands(func(a, b any) (any, error) {
		if !sameType(a, b) {
			return nil, errTypes
		}
		switch a := a.(type) {
		case *resource.Quantity:
			q := b.(*resource.Quantity)
			if sign < 0 {
				q.Neg()
			}
			a.Add(*q)
			return a.String(), nil
		case time.Duration:
			return (a + time.Duration(sign)*b.(time.Duration)).String(), nil
		}
		return finite(amount(a) + float64(sign)*amount(b))
	})
}

func multiply(a, b any) (any, error) {
	if _, isNumber := b.(float64); !isNumber {
		a, b = b, a
	}
	return scale(a, b, false)
}

func divide(a, b any) (any, error) {
	switch {
	case sameType(a, b) && amount(b) == 0, b == any(0.0):
		return nil, errZero
	case sameType(a, b):
		return finite(amount(a) / amount(b))
	}
	return scale(a, b, true)
}

// scale multiplies an operand by a number, or divides it. Quantities are computed in decimals and keep their
// format.
func scale(a, number any, divides bool) (any, error) {
	by, ok := number.(float64)
	if !ok {
		return nil, errTypes
	}
	if q, ok := a.(*resource.Quantity); ok {
		factor, err := ParseQuantity(fmt.Sprint(by))
		if err != nil {
			return nil, err
		}
		x, y, result := q.AsDec(), factor.AsDec(), new(inf.Dec)
		if divides {
			result.QuoRound(x, y, max(x.Scale(), y.Scale()), inf.RoundDown)
		} else {
			result.Mul(x, y)
		}
		return resource.NewDecimalQuantity(*result, q.Format).String(), nil
	}
	result := amount(a) * by
	if divides {
		result = amount(a) / by
	}
	if _, ok := a.(time.Duration); !ok {
		return finite(result)
	}
	if math.IsNaN(result) || math.Abs(result) >= math.MaxInt64/float64(time.Second) {
		return nil, errRange
	}
	return time.Duration(result * float64(time.Second)).String(), nil
}

func modulo(a, b any) (any, error) {
	if !sameType(a, b) {
		return nil, errTypes
	}
	if d, ok := a.(time.Duration); ok {
		if b.(time.Duration) == 0 {
			return nil, errZero
		}
		return (d % b.(time.Duration)).String(), nil
	}
	x, ok := integer(amount(a))
	y, also := integer(amount(b))
	switch q, isQuantity := a.(*resource.Quantity); {
	case !ok || !also:
		return nil, errors.New("non-integer argument(s) passed for modulo")
	case y == 0:
		return nil, errZero
	case isQuantity:
		return resource.NewQuantity(x%y, q.Format).String(), nil
	}
	return x % y, nil
}

// sum adds the operands of a list, which must not be empty.
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
		if total, err = add(1)(in, []any{total, item}); err != nil {
			return nil, err
		}
	}
	return total, nil
}

// round rounds half away from zero.
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
