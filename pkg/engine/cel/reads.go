package cel

import (
	"cmp"
	"slices"
	"strings"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	plugincel "k8s.io/apiserver/pkg/admission/plugin/cel"
	"k8s.io/apiserver/pkg/cel/mutation"

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

// Mark marks a step of the policy as confidential if an expression reads values of Secrets.
func (p *Policy) Mark(step *engine.Step, secret Reads) {
	step.Confidential = secret.Answers || slices.ContainsFunc(p.Scope.compiled, func(x *Expression) bool {
		return x.reads.Object && secret.Object || x.reads.Metadata && secret.Metadata ||
			x.reads.Params && secret.Params
	})
	for _, x := range p.Scope.compiled {
		if step.Confidential {
			step.Writes = append(step.Writes, x.writes...)
		}
	}
}

// add adds the reads of a path. Unknown constructs end a path, so that they read all of it.
func (r *Reads) add(path []string) {
	if path[0] == plugincel.RequestVarName {
		if path = path[1:]; len(path) == 0 {
			path = []string{plugincel.ObjectVarName} // the whole request holds it
		}
	}
	switch below := path[1:]; path[0] {
	case plugincel.ObjectVarName, plugincel.OldObjectVarName:
		identity := len(below) == 1 && (below[0] == "kind" || below[0] == "apiVersion") ||
			len(below) == 2 && below[0] == "metadata" &&
				slices.Contains([]string{"name", "namespace", "uid"}, below[1])
		r.Object, r.Metadata = r.Object || !isPublic(below), r.Metadata || !identity
	case plugincel.ParamsVarName:
		r.Params = r.Params || !isPublic(below)
	}
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
func fieldsRead(e ast.Expr) (path []string) {
	for e.Kind() != ast.IdentKind {
		field := ""
		switch function, args := callOf(e); function {
		case "":
			if e.Kind() == ast.SelectKind {
				e, field = e.AsSelect().Operand(), e.AsSelect().FieldName()
			}
		case operators.Index, operators.OptIndex, operators.OptSelect:
			e, field = args[0], plainText(args[1])
		}
		if field == "" {
			return nil
		}
		path = slices.Insert(path, 0, field)
	}
	return append(strings.Split(e.AsIdent(), "."), path...)
}

// writesOf returns the places that a patch writes; none for other expressions.
func writesOf(e ast.Expr, t *cel.Type) (out engine.Writes) {
	if !t.IsExactType(jsonPatches) && !t.IsExactType(applyConfigurations) {
		return nil
	}
	eachLeaf(e, nil, false, func(path []string, computed bool) {
		switch i := slices.Index(path, anyName); {
		case i >= 0:
			path, computed = path[:i], true // the whole map: its other names would reveal this one
		case len(path) > 0 && path[0] == anyItem: // an operation whose path is unknown
			path = nil
		}
		out = append(out, engine.Write{Path: path, Computed: computed})
	})
	return out
}

// The names of a computed field, and of the elements of a list.
const anyName, anyItem = "*", "[]"

// member is a field, an entry or an element in a literal; or, without a name, what may be the whole or a part
// of it.
type member struct {
	name  string
	value ast.Expr
}

// membersOf returns the members of a literal, the branches of a conditional and lists that + joins; none for
// other expressions. If looped, a list from map() has the first literal of an object that its loop adds.
func membersOf(e ast.Expr, looped bool) (out []member) {
	switch e.Kind() {
	case ast.StructKind:
		for _, f := range e.AsStruct().Fields() {
			out = append(out, member{f.AsStructField().Name(), f.AsStructField().Value()})
		}
	case ast.MapKind:
		for _, entry := range e.AsMap().Entries() {
			name := cmp.Or(plainText(entry.AsMapEntry().Key()), anyName)
			out = append(out, member{name, entry.AsMapEntry().Value()})
		}
	case ast.ListKind:
		for _, item := range e.AsList().Elements() {
			out = append(out, member{anyItem, item})
		}
	case ast.CallKind:
		function, args := callOf(e)
		joined := function == operators.Add && args[0].Kind() == ast.ListKind && args[1].Kind() == ast.ListKind
		if function == operators.Conditional || joined {
			last := len(args) - 1
			out = []member{{value: args[last-1]}, {value: args[last]}}
		}
	case ast.ComprehensionKind:
		ast.PreOrderVisit(e.AsComprehension().LoopStep(), ast.NewExprVisitor(func(e ast.Expr) {
			if looped && e.Kind() == ast.StructKind && len(out) == 0 {
				out = []member{{anyItem, e}}
			}
		}))
	}
	return out
}

// eachLeaf adds the fields in the value of an expression, and those that a JSON patch operation writes.
// Computed values are leaves. If named (for display), a list from map() has the fields of its objects,
// without the keys that find list elements.
func eachLeaf(e ast.Expr, path []string, named bool, add func(path []string, computed bool)) {
	if e.Kind() == ast.StructKind && e.AsStruct().TypeName() == mutation.JSONPatchTypeName {
		operationOf(e, add)
		return
	}
	members := membersOf(e, named)
	for _, m := range members {
		at := append(slices.Clone(path), m.name)
		if m.name == "" {
			at = path
		}
		inList := len(path) > 0 && path[len(path)-1] == anyItem
		if isKey := inList && m.name == "name" && len(members) > 1; !isKey || !named {
			eachLeaf(m.value, at, named, add)
		}
	}
	if len(members) > 0 {
		return
	}
	switch e.Kind() {
	case ast.LiteralKind, ast.StructKind, ast.MapKind, ast.ListKind:
		if len(path) > 0 {
			add(path, false)
		}
	default:
		add(path, true)
	}
}

func operationOf(e ast.Expr, add func(path []string, computed bool)) {
	fields := map[string]ast.Expr{}
	for _, field := range membersOf(e, false) {
		fields[field.name] = field.value
	}
	path := policydecode.PointerNames(plainText(fields["path"]))
	switch {
	case plainText(fields["path"]) == "":
		add(nil, true)
	case fields["value"] != nil:
		eachLeaf(fields["value"], path, false, add)
	default:
		add(path, fields["from"] != nil)
	}
}
