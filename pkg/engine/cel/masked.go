package cel

import (
	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
)

// maskedText is a patch of which only what stands literally in its expression is left: each other
// value is engine.HiddenValue. It is empty for an expression that computes where it writes.
func maskedText(a *cel.Ast) string {
	m := masking{ast.NewExprFactory()}
	e, ok := m.value(a.NativeRep().Expr())
	if !ok || e.Kind() == ast.LiteralKind {
		return ""
	}
	text, err := cel.ExprToString(e, ast.NewSourceInfo(nil))
	if err != nil {
		return ""
	}
	return text
}

type masking struct{ ast.ExprFactory }

// value returns an expression without what is computed, and whether that is possible.
func (m masking) value(e ast.Expr) (ast.Expr, bool) {
	switch e.Kind() {
	case ast.LiteralKind:
		return e, true
	case ast.ListKind:
		items, ok := make([]ast.Expr, e.AsList().Size()), len(e.AsList().OptionalIndices()) == 0
		for i := 0; ok && i < len(items); i++ {
			items[i], ok = m.value(e.AsList().Elements()[i])
		}
		return m.NewList(0, items, nil), ok
	case ast.MapKind:
		var entries []ast.EntryExpr
		for _, x := range e.AsMap().Entries() {
			entry := x.AsMapEntry()
			v, ok := m.value(entry.Value())
			if !ok || entry.IsOptional() || entry.Key().Kind() != ast.LiteralKind {
				return nil, false
			}
			entries = append(entries, m.NewMapEntry(0, entry.Key(), v, false))
		}
		return m.NewMap(0, entries), true
	case ast.StructKind:
		var fields []ast.EntryExpr
		for _, x := range e.AsStruct().Fields() {
			field := x.AsStructField()
			v, ok := m.value(field.Value())
			if !ok || field.IsOptional() || v.Kind() == ast.LiteralKind && v != field.Value() && (field.Name() == "path" || field.Name() == "from") {
				return nil, false
			}
			fields = append(fields, m.NewStructField(0, field.Name(), v, false))
		}
		return m.NewStruct(0, e.AsStruct().TypeName(), fields), true
	}
	return m.NewLiteral(0, types.String(engine.HiddenValue)), true
}

// masked evaluates what is literal in an expression whose value is hidden.
func (e *Evaluation) masked(x *Expression) (ref.Val, error) {
	if x.masked == "" {
		return nil, engine.ErrHidden
	}
	s := e.activation.scope
	literal, err := s.part(s.environment.patches, x.masked)
	if err != nil {
		return nil, engine.ErrHidden
	}
	return e.evaluate(literal)
}
