package cel

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
	plugincel "k8s.io/apiserver/pkg/admission/plugin/cel"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
)

// Unmet returns the error of a false condition. With Input.Explain, the deciding operands are evaluated once
// more, by themselves.
func (e *Evaluation) Unmet(x *Expression) *engine.SkippedError {
	return &engine.SkippedError{
		Reason: fmt.Sprintf("match condition %q is false", x.Name), Err: errors.New(shorten(x.Text) + e.deciding(x)),
	}
}

// deciding lists the values that make a condition false, such as " (object.spec.replicas is 2)".
func (e *Evaluation) deciding(x *Expression) (out string) {
	if !e.input.Explain {
		return ""
	}
	defer func() { _ = recover() }() // a library may panic on a part that makes no sense by itself
	if parsed, issues := e.scope.environment.plain.Parse(x.Text); issues.Err() == nil {
		f := finder{Evaluation: e, source: parsed.NativeRep().SourceInfo()}
		if f.explain(parsed.NativeRep().Expr(), false); len(f.found) > 0 {
			out = " (" + strings.Join(f.found, ", ") + ")"
		}
	}
	return out
}

const mostFound = 4

// finder finds the parts that make an expression false.
type finder struct {
	*Evaluation
	source *ast.SourceInfo
	found  []string
}

func (f *finder) add(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	if len(f.found) < mostFound && !slices.Contains(f.found, text) {
		f.found = append(f.found, text)
	}
}

// explain explains a part whose value decides the whole.
func (f *finder) explain(x ast.Expr, value bool) {
	function, args := callOf(x)
	switch {
	case isHas(x) && value:
		f.operand(fieldOf(x))
	case isHas(x):
		f.add("%s is not there", shorten(f.text(fieldOf(x))))
	case function == operators.LogicalAnd && !value:
		if i := slices.IndexFunc(args, func(arg ast.Expr) bool { return f.value(arg) == types.False }); i >= 0 {
			f.explain(args[i], false)
		}
	case function == operators.LogicalOr && !value:
		for _, arg := range args {
			f.explain(arg, false)
		}
	case function == operators.LogicalNot:
		f.explain(args[0], !value)
	default:
		f.operands(x)
	}
}

// operands adds the values of a call's target and arguments, and of what a macro such as exists() goes over.
func (f *finder) operands(x ast.Expr) {
	if macro, ok := f.source.GetMacroCall(x.ID()); ok {
		f.operand(macro.AsCall().Target())
		return
	}
	f.operand(x.AsCall().Target())
	for _, arg := range x.AsCall().Args() {
		f.operand(arg)
	}
}

func (f *finder) operand(x ast.Expr) {
	if x.Kind() == ast.LiteralKind || x.Kind() == ast.ListKind || x.Kind() == ast.MapKind {
		return
	}
	if v := f.value(x); v != nil {
		f.add("%s is %s", shorten(f.text(x)), summaryOf(v))
	}
}

// value evaluates a part by itself; nil if that is impossible or unsafe: a language's function may query the
// cluster, or draw a random value.
func (f *finder) value(x ast.Expr) ref.Val {
	part, err := f.scope.compile(f.scope.environment.plain, Source{Text: f.text(x)}, nil)
	if err == nil && !f.asks(part) {
		if v, err := f.evaluate(part); err == nil {
			return v
		}
	}
	return nil
}

// text returns the source of a part; empty for none.
func (f *finder) text(x ast.Expr) string {
	text, _ := cel.ExprToString(x, f.source)
	return text
}

// asks reports whether an expression uses more than the input.
func (e *Evaluation) asks(x *Expression) bool {
	return x.Uses(plugincel.AuthorizerVarName) ||
		slices.ContainsFunc(slices.Collect(maps.Keys(e.input.Extra)), x.Uses)
}

func isHas(x ast.Expr) bool { return x.Kind() == ast.SelectKind && x.AsSelect().IsTestOnly() }

// fieldOf returns the a.b of has(a.b).
func fieldOf(x ast.Expr) ast.Expr {
	return ast.NewExprFactory().NewSelect(0, x.AsSelect().Operand(), x.AsSelect().FieldName())
}

func summaryOf(v ref.Val) string {
	switch v := v.(type) {
	case traits.Mapper:
		return fmt.Sprintf("a map of %v", v.Size().Value())
	case traits.Lister:
		return fmt.Sprintf("a list of %v", v.Size().Value())
	case types.String:
		return fmt.Sprintf("%q", shorten(string(v)))
	case types.Null:
		return "null"
	}
	return shorten(fmt.Sprint(v.Value()))
}
