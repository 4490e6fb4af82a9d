package cel

import (
	"fmt"
	"slices"
	"strings"

	"github.com/go-openapi/jsonpointer"
	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/ast"
	"k8s.io/apiserver/pkg/cel/mutation"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
)

// Uses reports whether the expression names a variable ("params"), a field of a variable
// ("request.userInfo"), or a function ("quantity()").
func (x *Expression) Uses(name string) bool {
	_, found := slices.BinarySearch(x.uses, name)
	return found
}

// Uses reports whether an expression of the policy names something, as Expression.Uses does.
func (s *Scope) Uses(name string) bool {
	return s.VariablesUse(name) || slices.ContainsFunc(s.compiled, func(x *Expression) bool { return x.Uses(name) })
}

// VariablesUse reports whether a variable names something.
func (s *Scope) VariablesUse(name string) bool {
	return slices.ContainsFunc(s.variables, func(v variable) bool { return v.expression != nil && v.expression.Uses(name) })
}

// Call is a call that an expression makes on a variable.
type Call struct {
	On, Function string
	// Args are the arguments that are text literals; any other is empty.
	Args []string
}

// Calls returns the calls that the expressions of the policy make.
func (s *Scope) Calls() []Call {
	var out []Call
	for _, x := range s.compiled {
		out = append(out, x.calls...)
	}
	for _, v := range s.variables {
		if v.expression != nil {
			out = append(out, v.expression.calls...)
		}
	}
	return out
}

// Paths returns the fields that a patch names: those of Object{...}, and the paths of
// JSONPatch{...} that are text literals.
func (x *Expression) Paths() []string { return x.paths }

// usesOf returns what an expression names, sorted: variables, their fields, functions.
func usesOf(a *cel.Ast) []string {
	var uses []string
	add := func(name string) { uses = append(uses, name) }
	ast.PreOrderVisit(a.NativeRep().Expr(), ast.NewExprVisitor(func(e ast.Expr) {
		switch e.Kind() {
		case ast.IdentKind:
			add(e.AsIdent())
		case ast.CallKind:
			add(e.AsCall().FunctionName() + "()")
		case ast.SelectKind:
			if operand := e.AsSelect().Operand(); operand.Kind() == ast.IdentKind {
				add(operand.AsIdent() + "." + e.AsSelect().FieldName())
			}
		}
	}))
	slices.Sort(uses)
	return slices.Compact(uses)
}

func callsIn(a *cel.Ast) []Call {
	var out []Call
	ast.PreOrderVisit(a.NativeRep().Expr(), ast.NewExprVisitor(func(e ast.Expr) {
		if e.Kind() != ast.CallKind || !e.AsCall().IsMemberFunction() || e.AsCall().Target().Kind() != ast.IdentKind {
			return
		}
		c := Call{On: e.AsCall().Target().AsIdent(), Function: e.AsCall().FunctionName()}
		for _, arg := range e.AsCall().Args() {
			c.Args = append(c.Args, plainText(arg))
		}
		out = append(out, c)
	}))
	return out
}

func plainText(e ast.Expr) string {
	if e.Kind() != ast.LiteralKind {
		return ""
	}
	text, _ := e.AsLiteral().Value().(string)
	return text
}

func pathsIn(a *cel.Ast) []string {
	var out []string
	add := func(path string) {
		if path != "" {
			out = append(out, path)
		}
	}
	ast.PreOrderVisit(a.NativeRep().Expr(), ast.NewExprVisitor(func(e ast.Expr) {
		if e.Kind() != ast.StructKind {
			return
		}
		switch e.AsStruct().TypeName() {
		case mutation.ObjectTypeName:
			leaves(e, "", add)
		case mutation.JSONPatchTypeName:
			for _, f := range e.AsStruct().Fields() {
				if f.AsStructField().Name() == "path" {
					add(pointed(plainText(f.AsStructField().Value())))
				}
			}
		}
	}))
	return engine.Distinct(out)
}

// leaves adds the fields of an apply configuration. What an expression computes
// is a leaf, unless it is a list made of objects.
func leaves(e ast.Expr, path string, add func(string)) {
	switch e.Kind() {
	case ast.StructKind:
		for _, f := range e.AsStruct().Fields() {
			field := f.AsStructField()
			if field.Name() == "name" && strings.HasSuffix(path, "[]") && len(e.AsStruct().Fields()) > 1 {
				continue // the key by which the element of the list is found
			}
			leaves(field.Value(), strings.TrimPrefix(path+"."+field.Name(), "."), add)
		}
	case ast.MapKind:
		for _, entry := range e.AsMap().Entries() {
			name := plainText(entry.AsMapEntry().Key())
			if name == "" {
				name = "*"
			}
			leaves(entry.AsMapEntry().Value(), path+"."+quotedName(name), add)
		}
		if e.AsMap().Size() == 0 {
			add(path)
		}
	case ast.ListKind:
		for _, item := range e.AsList().Elements() {
			leaves(item, path+"[]", add)
		}
		if e.AsList().Size() == 0 {
			add(path)
		}
	case ast.ComprehensionKind:
		if !leavesOfMapped(e.AsComprehension(), path, add) {
			add(path)
		}
	default:
		add(path)
	}
}

// leavesOfMapped adds the fields of the objects that map() makes a list of.
func leavesOfMapped(c ast.ComprehensionExpr, path string, add func(string)) bool {
	found := false
	ast.PreOrderVisit(c.LoopStep(), ast.NewExprVisitor(func(e ast.Expr) {
		if e.Kind() == ast.StructKind && !found {
			found = true
			leaves(e, path+"[]", add)
		}
	}))
	return found
}

// pointed converts a JSON pointer to the form of other paths.
func pointed(pointer string) string {
	if pointer == "" {
		return ""
	}
	var out strings.Builder
	for _, segment := range strings.Split(strings.TrimPrefix(pointer, "/"), "/") {
		segment = jsonpointer.Unescape(segment)
		switch {
		case segment == "-" || strings.Trim(segment, "0123456789") == "":
			fmt.Fprintf(&out, "[%s]", segment)
		case out.Len() > 0:
			out.WriteString("." + quotedName(segment))
		default:
			out.WriteString(quotedName(segment))
		}
	}
	return out.String()
}

// quotedName quotes a name that contains a separator of paths.
func quotedName(name string) string {
	if strings.ContainsAny(name, "./[]") {
		return `"` + name + `"`
	}
	return name
}
