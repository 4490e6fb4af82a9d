package cel

import (
	"slices"
	"strings"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
)

// Reads says what expressions may read, or what of it holds values of Secrets.
type Reads struct {
	// Object is more of the object, before or after the request, than metadata, kind and type,
	// and Metadata more than its identity.
	Object, Metadata bool
	Params           bool // more than their metadata, kind and type
	// Answers are those of a language's own functions; only expressions that call these get any.
	Answers bool
}

// Add adds what another expression reads.
func (r *Reads) Add(o Reads) {
	r.Object, r.Metadata, r.Params = r.Object || o.Object, r.Metadata || o.Metadata, r.Params || o.Params
}

// Traffic is what the expressions of a rule read and write together.
type Traffic struct {
	reads  Reads
	writes engine.Writes
}

// Traffic returns what the expressions and variables of the policy read and write.
func (s *Scope) Traffic() Traffic {
	var t Traffic
	for _, x := range slices.Concat(s.compiled, s.variables) {
		t.reads.Add(x.reads)
		if x.writes != nil {
			t.writes.Add(x.writes)
		}
	}
	return t
}

// Mark marks a step of the rule as confidential if it reads something that holds values of Secrets.
func (t *Traffic) Mark(step *engine.Step, secret Reads) {
	r := t.reads
	if secret.Answers || r.Object && secret.Object || r.Metadata && secret.Metadata ||
		r.Params && secret.Params {
		step.Confidential, step.Writes = true, &t.writes
	}
}

// readsOf returns what an expression reads by itself. What it does not understand counts as read.
func readsOf(e ast.NavigableExpr) (out Reads) {
	path := fieldsRead(e)
	if len(path) == 0 {
		for _, child := range e.Children() {
			out.Add(readsOf(child))
		}
		return out
	}
	if path[0] == requestName {
		if path = path[1:]; len(path) == 0 {
			path = []string{objectName} // which the request as a whole holds
		}
	}
	switch below := path[1:]; path[0] {
	case objectName, oldObjectName:
		identity := len(below) == 1 && (below[0] == "kind" || below[0] == "apiVersion") ||
			len(below) == 2 && below[0] == "metadata" &&
				slices.Contains([]string{"name", "namespace", "uid"}, below[1])
		return Reads{Object: !isPublic(below), Metadata: !identity}
	case paramsName:
		return Reads{Params: !isPublic(below)}
	}
	return Reads{}
}

// isPublic reports whether fields of a Secret hold nothing secret.
func isPublic(path []string) bool {
	if len(path) == 0 {
		return false
	}
	switch path[0] {
	case "kind", "apiVersion", "type":
		return true
	case "metadata":
		return len(path) > 2 && path[2] != engine.LastApplied || len(path) == 2 && path[1] != "annotations"
	}
	return false
}

// fieldsRead returns the path of an expression that is a name or a field below one, spelled with literals;
// empty for any other.
func fieldsRead(e ast.Expr) []string {
	switch e.Kind() {
	case ast.IdentKind:
		return strings.Split(e.AsIdent(), ".")
	case ast.SelectKind:
		return fieldBelow(e.AsSelect().Operand(), e.AsSelect().FieldName())
	}
	switch function, args := callOf(e); function {
	case operators.Index, operators.OptIndex, operators.OptSelect:
		if name := plainText(args[1]); name != "" {
			return fieldBelow(args[0], name)
		}
	}
	return nil
}

func fieldBelow(operand ast.Expr, field string) []string {
	if path := fieldsRead(operand); len(path) > 0 {
		return append(path, field)
	}
	return nil
}

// writesOf returns where a patch writes what; nil for what is none.
func writesOf(e ast.Expr, t *cel.Type) *engine.Writes {
	w := &engine.Writes{}
	switch {
	case t.IsExactType(jsonPatches):
		operationsOf(e, w)
	case t.IsExactType(applyConfigurations):
		valuesOf(e, w)
	default:
		return nil
	}
	return w
}

// valuesOf adds what the value of an expression writes to a place.
func valuesOf(e ast.Expr, w *engine.Writes) {
	switch e.Kind() {
	case ast.LiteralKind:
	case ast.StructKind:
		for _, f := range e.AsStruct().Fields() {
			valuesOf(f.AsStructField().Value(), w.Field(f.AsStructField().Name()))
		}
	case ast.MapKind:
		for _, entry := range e.AsMap().Entries() {
			name := plainText(entry.AsMapEntry().Key())
			if name == "" {
				w.Add(nil)
				return
			}
			valuesOf(entry.AsMapEntry().Value(), w.Field(name))
		}
	case ast.ListKind:
		for _, item := range e.AsList().Elements() {
			valuesOf(item, w.Item())
		}
	default:
		if branches := branchesOf(e); len(branches) > 0 {
			for _, branch := range branches {
				valuesOf(branch, w)
			}
			return
		}
		w.Add(nil)
	}
}

// branchesOf returns the operands of a choice, or of a list that is joined, of which a patch is made; none
// for anything else.
func branchesOf(e ast.Expr) []ast.Expr {
	switch function, args := callOf(e); function {
	case operators.Conditional:
		return args[1:]
	case operators.Add:
		if args[0].Kind() == ast.ListKind && args[1].Kind() == ast.ListKind {
			return args
		}
	}
	return nil
}

// operationsOf adds what the operations of a JSON patch write to an object.
func operationsOf(e ast.Expr, w *engine.Writes) {
	operations := branchesOf(e)
	switch e.Kind() {
	case ast.ListKind:
		operations = e.AsList().Elements()
	case ast.StructKind:
		operationOf(e.AsStruct(), w)
	default:
		if len(operations) == 0 {
			w.Add(nil)
		}
	}
	for _, operation := range operations {
		operationsOf(operation, w)
	}
}

func operationOf(e ast.StructExpr, w *engine.Writes) {
	fields := map[string]ast.Expr{}
	for _, f := range e.Fields() {
		fields[f.AsStructField().Name()] = f.AsStructField().Value()
	}
	path, ok := fields["path"]
	if !ok || plainText(path) == "" {
		w.Add(nil)
		return
	}
	at := w.At(plainText(path))
	if value, ok := fields["value"]; ok {
		valuesOf(value, at)
	} else if fields["from"] != nil {
		at.Add(nil)
	}
}
