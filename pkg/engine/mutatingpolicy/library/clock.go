package library

import (
	"fmt"
	"time"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common"
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
)

// clockOptions declare time.now(), which is one moment for a whole run, and the
// functions of times that need no clock.
func clockOptions() []cel.EnvOption {
	return []cel.EnvOption{
		cel.Variable(clockName, cel.TimestampType),
		cel.Macros(cel.ReceiverMacro("now", 0, func(f cel.MacroExprFactory, target ast.Expr, _ []ast.Expr) (ast.Expr, *common.Error) {
			if !isIdent(target, "time") {
				return nil, nil
			}
			return f.NewIdent(clockName), nil
		})),
		cel.Function("time.truncate", cel.Overload("time_truncate", []*cel.Type{cel.TimestampType, cel.DurationType}, cel.TimestampType,
			cel.BinaryBinding(truncate))),
		cel.Function("time.toCron", cel.Overload("time_to_cron", []*cel.Type{cel.TimestampType}, cel.StringType, cel.UnaryBinding(toCron))),
	}
}

func isIdent(e ast.Expr, name string) bool {
	return e.Kind() == ast.IdentKind && e.AsIdent() == name
}

func truncate(t, d ref.Val) ref.Val {
	at, isTime := t.Value().(time.Time)
	unit, isDuration := d.Value().(time.Duration)
	if !isTime || !isDuration {
		return types.MaybeNoSuchOverloadErr(t)
	}
	return types.Timestamp{Time: at.Truncate(unit)}
}

func toCron(t ref.Val) ref.Val {
	at, ok := t.Value().(time.Time)
	if !ok {
		return types.MaybeNoSuchOverloadErr(t)
	}
	return types.String(fmt.Sprintf("%d %d %d %d %d", at.Minute(), at.Hour(), at.Day(), at.Month(), at.Weekday()))
}
