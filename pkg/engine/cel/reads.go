package cel

import (
	"slices"
	"strings"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
)

// Reads says what expressions may read.
type Reads struct {
	// Object is more of the object, before or after the request, than metadata, kind and type,
	// and Metadata more than its identity.
	Object, Metadata bool
	Params           bool // more than their metadata, kind and type
	// Answers are values of a language's own variables, which functions may answer.
	Answers bool
}

// Add adds what another expression reads.
func (r *Reads) Add(o Reads) {
	r.Object, r.Metadata = r.Object || o.Object, r.Metadata || o.Metadata
	r.Params, r.Answers = r.Params || o.Params, r.Answers || o.Answers
}

// Traffic is what the expressions of a rule read and write together.
type Traffic struct {
	reads  Reads
	writes engine.Writes
}

// Add adds an expression.
func (t *Traffic) Add(x *Expression) {
	t.reads.Add(x.reads)
	if x.writes != nil {
		t.writes.Add(x.writes)
	}
}

// Traffic returns what the expressions of the policy read and write.
func (s *Scope) Traffic() Traffic {
	var t Traffic
	for _, x := range s.compiled {
		t.Add(x)
	}
	return t
}

// Mark marks a step of the rule as confidential if it reads something that holds values of Secrets.
func (t *Traffic) Mark(step *engine.Step, secret Reads) {
	if r := t.reads; r.Object && secret.Object || r.Metadata && secret.Metadata || r.Params && secret.Params || r.Answers && secret.Answers {
		step.Confidential, step.Writes = true, &t.writes
	}
}

// reader finds out what an expression reads. What it does not understand counts as read.
type reader struct {
	scope *Scope
	found Reads
}

// readsOf returns what an expression reads, by itself and by the variables that it uses.
func (s *Scope) readsOf(a *cel.Ast) Reads {
	r := reader{scope: s}
	r.read(ast.NavigateAST(a.NativeRep()))
	return r.found
}

func (r *reader) read(e ast.NavigableExpr) {
	switch path := fieldsRead(e); {
	case len(path) == 0:
		for _, child := range e.Children() {
			r.read(child)
		}
	case path[0] == variablesName && len(path) > 1:
		if v := r.scope.named(path[1]); v != nil {
			r.found.Add(v.reads)
		}
	case path[0] == variablesName:
		r.found = Reads{Object: true, Metadata: true, Params: true, Answers: true}
	case !isBound(e, path[0]):
		r.name(path)
	}
}

// isBound reports whether a macro binds a name around an expression: what it stands for is read elsewhere.
func isBound(e ast.NavigableExpr, name string) bool {
	for within := e; ; {
		around, ok := within.Parent()
		if !ok {
			return false
		}
		if around.Kind() == ast.ComprehensionKind {
			c := around.AsComprehension()
			before := within.ID() == c.IterRange().ID() || within.ID() == c.AccuInit().ID()
			if !before && slices.Contains([]string{c.IterVar(), c.IterVar2(), c.AccuVar()}, name) {
				return true
			}
		}
		within = around
	}
}

// name adds what a name and fields of it read.
func (r *reader) name(path []string) {
	switch path[0] {
	case requestName:
		if len(path) == 1 || path[1] == objectName || path[1] == oldObjectName {
			r.object(path[min(len(path), 2):])
		}
	case objectName, oldObjectName:
		r.object(path[1:])
	case paramsName:
		r.found.Params = r.found.Params || !isPublic(path[1:])
	case namespaceName, authorizerName:
	default:
		r.found.Answers = true
	}
}

// object adds what fields of the object read.
func (r *reader) object(path []string) {
	identity := len(path) == 1 && (path[0] == "kind" || path[0] == "apiVersion") ||
		len(path) == 2 && path[0] == "metadata" && slices.Contains([]string{"name", "namespace", "uid"}, path[1])
	r.found.Add(Reads{Object: !isPublic(path), Metadata: !identity})
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
func writesOf(a *cel.Ast) *engine.Writes {
	w := &engine.Writes{}
	switch e, t := a.NativeRep().Expr(), a.OutputType(); {
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
	switch {
	case e.Kind() == ast.ListKind:
		for _, item := range e.AsList().Elements() {
			operationsOf(item, w)
		}
	case e.Kind() == ast.StructKind:
		fields := map[string]ast.Expr{}
		for _, f := range e.AsStruct().Fields() {
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
	default:
		branches := branchesOf(e)
		for _, branch := range branches {
			operationsOf(branch, w)
		}
		if len(branches) == 0 {
			w.Add(nil)
		}
	}
}
