package library

import (
	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common"
	"github.com/google/cel-go/common/ast"
	"github.com/kyverno/sdk/extensions/cel/libs/time"
)

// clockOptions declare the functions of times, of which time.now() is one moment for a whole run.
func clockOptions() []cel.EnvOption {
	return []cel.EnvOption{
		time.Lib(time.Latest()),
		cel.Variable(clockName, cel.TimestampType),
		cel.Macros(cel.ReceiverMacro("now", 0, func(f cel.MacroExprFactory, target ast.Expr, _ []ast.Expr) (ast.Expr, *common.Error) {
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
