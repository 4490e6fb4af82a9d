package translate

import (
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/convert/expr"
)

// function is a function of Kyverno's JMESPath.
type function struct {
	params       []kinds // 0 for a parameter that may be anything, null included
	variadic     bool
	policiesOnly bool // MutatingAdmissionPolicies do not have it
	translate    func(*callOf) (Value, error)
	// refused is why there is no translation, and instead the nearest way.
	refused, instead string
}

const isSized = isString | isList | isMap

// functions are those that expressions may call. The table is never written to.
//
//nolint:gochecknoglobals // an immutable table
var functions map[string]function

func init() { //nolint:gochecknoinits // the table refers to functions that read it
	functions = map[string]function{
		"to_upper": {params: []kinds{isString}, translate: method("upperAscii")},
		"to_lower": {params: []kinds{isString}, translate: method("lowerAscii")},
		"length":   {params: []kinds{isSized}, translate: length},
	}
}

// method is a method of a text without arguments.
func method(name string) func(*callOf) (Value, error) {
	return func(c *callOf) (Value, error) {
		return c.emptyToEmpty(func(text expr.Expr) expr.Expr { return expr.Method(text, name) })
	}
}

func length(c *callOf) (Value, error) {
	return result(expr.Method(c.args[0].plain, "size"), Number)
}
