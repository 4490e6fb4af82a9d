package cel

import (
	"cmp"
	"slices"
	"strings"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/policydecode"
)

// Reads says what expressions may read, or which of these hold values of Secrets.
type Reads struct {
	// Object is more of the object, before or after the request, than metadata, kind and type; Metadata is more
	// than its identity.
	Object, Metadata bool
	Params           bool // more than metadata, kind and type
	// Answers are the results of a language's own functions; only expressions that call them get any.
	Answers bool
}

// Add adds another expression's reads.
func (r *Reads) Add(o Reads) {
	r.Object, r.Metadata, r.Params = r.Object || o.Object, r.Metadata || o.Metadata, r.Params || o.Params
}

// Traffic has the reads and writes of a rule's expressions.
type Traffic struct {
	reads  Reads
	writes engine.Writes
}

// Traffic returns the reads and writes of the policy's expressions and variables.
func (s *Scope) Traffic() Traffic {
	var t Traffic
	for _, x := range slices.Concat(s.compiled, s.variables) {
		t.reads.Add(x.reads)
		t.writes = append(t.writes, x.writes...)
	}
	return t
}

// Mark marks a step of the rule as confidential if it reads values of Secrets.
func (t *Traffic) Mark(step *engine.Step, secret Reads) {
	r := t.reads
	if secret.Answers || r.Object && secret.Object || r.Metadata && secret.Metadata ||
		r.Params && secret.Params {
		step.Confidential, step.Writes = true, t.writes
	}
}

// readsOf returns an expression's own reads. Unknown constructs count as reads.
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
			path = []string{objectName} // the whole request holds it
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

// isPublic reports whether fields of a Secret are not secret.
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

// fieldsRead returns the path of an expression that is a name or a field below one, with literal keys; empty
// for others.
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

// writesOf returns the places that a patch writes; none for other expressions.
func writesOf(e ast.Expr, t *cel.Type) (out engine.Writes) {
	add := func(path []string, computed bool) {
		if i := slices.Index(path, anyName); i >= 0 {
			path, computed = path[:i], true // the whole map: its other names would reveal this one
		}
		out = append(out, engine.Write{Path: path, Computed: computed})
	}
	switch {
	case t.IsExactType(jsonPatches):
		operationsOf(e, add)
	case t.IsExactType(applyConfigurations):
		eachLeaf(e, nil, false, add)
	}
	return out
}

// anyName is the name of a computed field.
const anyName = "*"

// eachLeaf adds the fields in the value of an expression. Computed values are leaves. If named (for display),
// a list from map() has the fields of its objects, without the keys that find list elements.
func eachLeaf(e ast.Expr, path []string, named bool, add func(path []string, computed bool)) {
	below := func(name string) []string { return append(slices.Clone(path), name) }
	size := -1
	switch e.Kind() {
	case ast.StructKind:
		size = len(e.AsStruct().Fields())
		for _, f := range e.AsStruct().Fields() {
			name := f.AsStructField().Name()
			isKey := name == "name" && size > 1 && len(path) > 0 && path[len(path)-1] == "[]"
			if !isKey || !named {
				eachLeaf(f.AsStructField().Value(), below(name), named, add)
			}
		}
	case ast.MapKind:
		size = e.AsMap().Size()
		for _, entry := range e.AsMap().Entries() {
			name := cmp.Or(plainText(entry.AsMapEntry().Key()), anyName)
			eachLeaf(entry.AsMapEntry().Value(), below(name), named, add)
		}
	case ast.ListKind:
		size = e.AsList().Size()
		for _, item := range e.AsList().Elements() {
			eachLeaf(item, below("[]"), named, add)
		}
	case ast.LiteralKind:
		add(path, false)
	case ast.ComprehensionKind:
		if step := e.AsComprehension().LoopStep(); named && structIn(step) != nil {
			eachLeaf(structIn(step), below("[]"), named, add)
			return
		}
		add(path, true)
	default:
		branches := branchesOf(e)
		for _, branch := range branches {
			eachLeaf(branch, path, named, add)
		}
		if len(branches) == 0 {
			add(path, true)
		}
	}
	if size == 0 && len(path) > 0 {
		add(path, false)
	}
}

// structIn returns the first object literal in an expression; it may be nil.
func structIn(e ast.Expr) (found ast.Expr) {
	ast.PreOrderVisit(e, ast.NewExprVisitor(func(e ast.Expr) {
		if e.Kind() == ast.StructKind && found == nil {
			found = e
		}
	}))
	return found
}

// branchesOf returns the operands of a conditional, or of joined lists, in a patch; none for others.
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

// operationsOf adds the places that the operations of a JSON patch write.
func operationsOf(e ast.Expr, add func(path []string, computed bool)) {
	operations := branchesOf(e)
	switch e.Kind() {
	case ast.ListKind:
		operations = e.AsList().Elements()
	case ast.StructKind:
		operationOf(e.AsStruct(), add)
	default:
		if len(operations) == 0 {
			add(nil, true)
		}
	}
	for _, operation := range operations {
		operationsOf(operation, add)
	}
}

func operationOf(e ast.StructExpr, add func(path []string, computed bool)) {
	fields := map[string]ast.Expr{}
	for _, f := range e.Fields() {
		fields[f.AsStructField().Name()] = f.AsStructField().Value()
	}
	if fields["path"] == nil || plainText(fields["path"]) == "" {
		add(nil, true)
		return
	}
	path := policydecode.PointerNames(plainText(fields["path"]))
	if value := fields["value"]; value != nil {
		eachLeaf(value, path, false, add)
	} else {
		add(path, fields["from"] != nil)
	}
}
