package cel

import (
	"fmt"
	"slices"
	"strings"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
)

// ConditionError is a match condition that is false.
type ConditionError struct {
	Name       string // of the condition
	Expression string
	// Found says what the parts of the expression that decide are, such as
	// "object.spec.replicas is 2"; empty where nobody asks.
	Found []string
}

// Error names the condition, its expression and what was found.
func (e *ConditionError) Error() string {
	text := e.Brief() + ": " + shorten(e.Expression)
	if len(e.Found) > 0 {
		text += " (" + strings.Join(e.Found, ", ") + ")"
	}
	return text
}

// Brief names the condition, without what was found on the one object.
func (e *ConditionError) Brief() string { return fmt.Sprintf("match condition %q is false", e.Name) }

// Unmet says why a condition is false that Condition has evaluated. Where the Input
// wants it explained, the operands that decide are evaluated once more, by
// themselves.
func (e *Evaluation) Unmet(name string, x *Expression) *ConditionError {
	out := &ConditionError{Name: name, Expression: x.text}
	if e.activation.input.Explain {
		out.Found = e.explained(x)
	}
	return out
}

// mostFound bounds what is found of one expression.
const mostFound = 4

func (e *Evaluation) explained(x *Expression) (found []string) {
	defer func() {
		if recover() != nil { // in a library, over a part that is strange by itself
			found = nil
		}
	}()
	parser, err := e.activation.scope.parser()
	if err != nil {
		return nil
	}
	parsed, issues := parser.Parse(x.text)
	if issues.Err() != nil {
		return nil
	}
	f := finder{evaluation: e, source: parsed.NativeRep().SourceInfo()}
	f.isFalse(parsed.NativeRep().Expr())
	return f.found
}

// finder looks for the parts of an expression that make it false.
type finder struct {
	evaluation *Evaluation
	source     *ast.SourceInfo
	found      []string
}

func (f *finder) add(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	if len(f.found) < mostFound && !slices.Contains(f.found, text) {
		f.found = append(f.found, text)
	}
}

// isFalse is about a part that is false, and so makes all of it false.
func (f *finder) isFalse(x ast.Expr) {
	switch {
	case isHas(x):
		f.add("%s is not there", f.text(fieldOf(x)))
	case x.Kind() == ast.CallKind && x.AsCall().FunctionName() == operators.LogicalAnd:
		for _, arg := range x.AsCall().Args() {
			if f.value(arg) == types.False {
				f.isFalse(arg)
				return
			}
		}
	case x.Kind() == ast.CallKind && x.AsCall().FunctionName() == operators.LogicalOr:
		for _, arg := range x.AsCall().Args() {
			f.isFalse(arg)
		}
	case x.Kind() == ast.CallKind && x.AsCall().FunctionName() == operators.LogicalNot:
		f.isTrue(x.AsCall().Args()[0])
	default:
		f.operands(x)
	}
}

// isTrue is about a part that is true, and should not be.
func (f *finder) isTrue(x ast.Expr) {
	if isHas(x) {
		f.tell(fieldOf(x))
		return
	}
	f.operands(x)
}

// operands tells what a call is made on and with.
func (f *finder) operands(x ast.Expr) {
	call := x
	if macro, ok := f.source.GetMacroCall(x.ID()); ok { // such as exists()
		f.tell(macro.AsCall().Target())
		return
	}
	if call.Kind() != ast.CallKind {
		return // it is false, which has been said
	}
	if call.AsCall().IsMemberFunction() {
		f.tell(call.AsCall().Target())
	}
	for _, arg := range call.AsCall().Args() {
		f.tell(arg)
	}
}

// tell tells the value of an operand, if it is not written there.
func (f *finder) tell(x ast.Expr) {
	if x == nil || x.Kind() == ast.LiteralKind || x.Kind() == ast.ListKind || x.Kind() == ast.MapKind {
		return
	}
	if v := f.value(x); v != nil {
		f.add("%s is %s", f.text(x), f.evaluation.shown(v))
	}
}

// value evaluates a part by itself; nil where that cannot be done, or should not:
// a function of the language may ask the world, or draw a random value.
func (f *finder) value(x ast.Expr) ref.Val {
	text, err := cel.ExprToString(x, f.source)
	if err != nil {
		return nil
	}
	part, err := f.evaluation.activation.scope.part(text)
	if err != nil || f.evaluation.asksMore(part) {
		return nil
	}
	v, err := f.evaluation.evaluate(part)
	if err != nil || !types.IsPrimitiveType(v) && checkSize(part, v) != nil {
		return nil
	}
	return v
}

// asksMore reports whether an expression names more than what it was given.
func (e *Evaluation) asksMore(x *Expression) bool {
	for name := range x.uses {
		if _, extra := e.activation.input.Extra[name]; extra || name == authorizerName {
			return true
		}
	}
	return false
}

func (f *finder) text(x ast.Expr) string {
	text, err := cel.ExprToString(x, f.source)
	if err != nil {
		return "a part of it"
	}
	return shorten(text)
}

// isHas reports whether an expression is has(a.b).
func isHas(x ast.Expr) bool { return x.Kind() == ast.SelectKind && x.AsSelect().IsTestOnly() }

// fieldOf is the a.b of has(a.b).
func fieldOf(x ast.Expr) ast.Expr {
	return ast.NewExprFactory().NewSelect(0, x.AsSelect().Operand(), x.AsSelect().FieldName())
}

// shown is a value in few words, and none that a Secret holds.
func (e *Evaluation) shown(v ref.Val) string {
	if e.seesSecret() {
		return hidden
	}
	if secrets := e.activation.input.Secrets; secrets != nil && secrets.Any() && secrets.Known(v.Value()) {
		return hidden
	}
	if size, ok := v.(traits.Sizer); ok {
		switch v.(type) {
		case traits.Mapper:
			return fmt.Sprintf("a map of %v", size.Size().Value())
		case traits.Lister:
			return fmt.Sprintf("a list of %v", size.Size().Value())
		}
	}
	if text, ok := v.Value().(string); ok {
		return fmt.Sprintf("%q", shorten(text))
	}
	if v == types.NullValue {
		return "null"
	}
	return shorten(fmt.Sprint(v.Value()))
}

const hidden = "***"

// seesSecret reports whether one of the objects that expressions see is a Secret.
func (e *Evaluation) seesSecret() bool {
	in := &e.activation.input
	for _, object := range []any{in.Object, in.OldObject, in.Params, in.RequestMap["object"], in.RequestMap["oldObject"]} {
		if m, ok := object.(map[string]any); ok && m["kind"] == "Secret" {
			return true
		}
	}
	return false
}
