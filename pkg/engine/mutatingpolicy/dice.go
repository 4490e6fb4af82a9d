package mutatingpolicy

import (
	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common"
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/kyverno/sdk/extensions/cel/libs/time"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
)

const (
	drawFunction  = "@draw"
	defaultRandom = "[0-9a-z]{8}" // the default pattern of random()
)

// diceType is the type of an evaluation's series of random values.
//
//nolint:gochecknoglobals // an immutable value
var diceType = cel.OpaqueType("kyverno.dice")

// diceOptions declare random(pattern) and random.random(pattern).
func diceOptions() []cel.EnvOption {
	macros := []cel.Macro{}
	for count := range 2 {
		macros = append(macros,
			cel.GlobalMacro("random", count,
				func(f cel.MacroExprFactory, _ ast.Expr, args []ast.Expr) (ast.Expr, *common.Error) {
					return draw(f, args), nil
				}),
			cel.ReceiverMacro("random", count,
				func(f cel.MacroExprFactory, target ast.Expr, args []ast.Expr) (ast.Expr, *common.Error) {
					if !isIdent(target, "random") {
						return nil, nil
					}
					return draw(f, args), nil
				}))
	}
	return []cel.EnvOption{
		cel.Variable(diceName, diceType),
		cel.Macros(macros...),
		cel.Function(drawFunction,
			cel.Overload("kyverno_draw", []*cel.Type{diceType, cel.StringType}, cel.StringType,
				cel.BinaryBinding(func(d, pattern ref.Val) ref.Val {
					out, err := d.Value().(*engine.Random).Text(pattern.Value().(string))
					if err != nil {
						return types.WrapErr(err)
					}
					return types.String(out)
				}))),
	}
}

func draw(f cel.MacroExprFactory, args []ast.Expr) ast.Expr {
	if len(args) == 0 {
		args = []ast.Expr{f.NewLiteral(types.String(defaultRandom))}
	}
	return f.NewCall(drawFunction, f.NewIdent(diceName), args[0])
}

// clockOptions declare the time functions; time.now() is the same throughout a run.
func clockOptions() []cel.EnvOption {
	return []cel.EnvOption{
		time.Lib(time.Latest()),
		cel.Variable(clockName, cel.TimestampType),
		cel.Macros(cel.ReceiverMacro("now", 0,
			func(f cel.MacroExprFactory, target ast.Expr, _ []ast.Expr) (ast.Expr, *common.Error) {
				if !isIdent(target, "time") {
					return nil, nil
				}
				return f.NewIdent(clockName), nil
			})),
	}
}

func isIdent(e ast.Expr, name string) bool {
	return e.Kind() == ast.IdentKind && e.AsIdent() == name
}
