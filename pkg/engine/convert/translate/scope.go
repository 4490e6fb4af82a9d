package translate

import (
	"maps"
	"slices"
	"strings"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/convert/expr"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/diff"
)

// Language is what is translated to.
type Language int

// The target languages.
const (
	MutatingPolicy          Language = iota // Kyverno's
	MutatingAdmissionPolicy                 // Kubernetes', which has fewer functions
)

// Options describe the objects that a rule matches.
type Options struct {
	Language Language
	// Kinds are the schemas of the objects: one for each of their kinds, zero where it is not known.
	Kinds []diff.Type
	// Sure are places that the objects always have: "spec.template".
	Sure []string
	// Namespace is the expression of what Kyverno takes for the namespace of the request: a Namespace counts
	// as its own.
	Namespace expr.Expr
	// Targets is set for expressions that are evaluated on the targets of a rule: object is the target then,
	// and request.object what the rule matched. Target is the schema of the targets.
	Targets    bool
	Target     diff.Type
	TargetSure []string
	// Triggers is set for a rule with targets: Kyverno evaluates what triggers it a second time, without
	// oldObject.
	Triggers bool
	// Deleted is set where the rule matches objects that are deleted, and no others: a request for that has
	// only the object before it.
	Deleted bool
}

// Scope says what the names are in CEL that Kyverno's expressions use. It is not safe for concurrent
// use.
type Scope struct {
	options Options
	names   map[string]Value
	refused map[string]error // names that cannot be translated
	bound   []string         // variables of macros around the expression
	place   []string         // of {{@}}
	inserts []Value          // variables in the variable that is translated
	depth   int              // of the node that is translated
	tests   bool             // what is translated is compared, and written nowhere
	notes   *[]string
	size    *int // of all values that were translated
}

// maxSize is how many parts all values of a rule may be written with.
const maxSize = 200_000

// NewScope returns a scope with what each rule has: request, serviceAccountName and
// serviceAccountNamespace, and target where there is one.
func NewScope(o Options) *Scope {
	s := &Scope{
		options: o, names: map[string]Value{}, refused: map[string]error{},
		notes: &[]string{}, size: new(int),
	}
	s.names["request"] = s.request()
	user := expr.Field(expr.Field(expr.Name("request"), "userInfo"), "username")
	isAccount := expr.Method(user, "matches", expr.String("^system:serviceaccount:[^:]*:"))
	for name, i := range map[string]int64{"serviceAccountNamespace": 2, "serviceAccountName": 3} {
		part := expr.Index(expr.Method(user, "split", expr.String(":")), expr.Int(i))
		s.names[name] = Expression(expr.Typed(expr.Cond(isAccount, part, expr.String("")), expr.Text), Text)
	}
	if o.Targets {
		s.names["target"] = Expression(expr.Name("object"), ObjectType([]diff.Type{o.Target}, o.TargetSure...))
	}
	return s
}

// request is the admission request. Its object is that of the policy, which has its type.
func (s *Scope) request() Value {
	kind := Type{
		kinds: isMap, known: map[string]*Type{"group": &Name, "version": &Name, "kind": &Name},
		required: []string{"group", "version", "kind"},
	}
	resource := Type{
		kinds: isMap, known: map[string]*Type{"group": &Name, "version": &Name, "resource": &Name},
		required: []string{"group", "version", "resource"},
	}
	groups := ListOf(Text)
	user := Type{
		kinds: isMap, known: map[string]*Type{"username": &Text, "uid": &Text, "groups": &groups},
		required: []string{"username"},
	}
	object := ObjectType(s.options.Kinds, s.options.Sure...)
	return Expression(expr.Typed(expr.Name("request"), expr.OtherKind), Type{kinds: isMap, required: []string{"operation", "kind", "resource", "userInfo", "object"}, known: map[string]*Type{
		"operation": {kinds: isString, filled: true, form: PathSegment}, "name": &Name, "namespace": &Name, "subResource": &Text, "uid": &Name,
		"kind": &kind, "resource": &resource, "userInfo": &user, "object": &object, "oldObject": &object,
	}})
}

// ofRequest is a field of the request, where CEL has another name for it than Kyverno.
func (s *Scope) ofRequest(name string) (v Value, ok bool) {
	object, old := expr.Name("object"), expr.Name("oldObject")
	if s.options.Targets || s.options.Triggers {
		old = expr.Field(expr.Name("request"), "oldObject")
	}
	if s.options.Targets {
		object = expr.Field(expr.Name("request"), "object")
	}
	if s.options.Deleted {
		object = old
	}
	typ := ObjectType(s.options.Kinds, s.options.Sure...)
	switch name {
	case "object":
		return Expression(object, typ), true
	case "oldObject":
		return Value{typ: typ, plain: old, has: expr.NotEqual(old, expr.Null())}, true
	case "namespace":
		return Expression(expr.Typed(s.options.Namespace, expr.Text), Name), true
	case "uid":
		panic(unsupported("request.uid", "the request has none in CEL", "tell requests apart by request.name and request.userInfo"))
	case "roles", "clusterRoles":
		panic(unsupported("request."+name, "CEL knows no roles of the user", "ask for groups in request.userInfo"))
	}
	return v, false
}

// Language is what is translated to.
func (s *Scope) Language() Language { return s.options.Language }

// Child returns a scope that has all that this one has now.
func (s *Scope) Child() *Scope {
	child := *s
	child.names = maps.Clone(s.names)
	child.bound = slices.Clone(s.bound)
	return &child
}

// At returns a scope for a string at a path of the patch, which {{@}} is about.
func (s *Scope) At(path ...string) *Scope {
	child := *s
	child.place = path
	return &child
}

// Define gives a name a value: a context entry, an element of a foreach.
func (s *Scope) Define(name string, v Value) { s.names[name] = v }

// Refuse says why a variable has no value in CEL, and what to use instead.
func (s *Scope) Refuse(name, reason, instead string) {
	s.refused[name] = unsupported("the variable "+name, reason, instead).error
}

// Bind reserves a name for a variable of a macro that the expressions stand in, such as c, and returns it,
// or another one where that is taken. The hint is the name of the list: containers.
func (s *Scope) Bind(hint string) string {
	name := s.fresh(hint)
	s.bound = append(s.bound, name)
	return name
}

// fresh is a name for an element of a list.
func (s *Scope) fresh(hint string) string {
	name := "e"
	if first := strings.ToLower(hint); first != "" && first[0] >= 'a' && first[0] <= 'z' && strings.HasSuffix(first, "s") {
		name = first[:1]
	}
	for n := 2; slices.Contains(s.bound, name); n++ {
		name = name[:1] + string(rune('0'+n))
	}
	return name
}

func (s *Scope) isBound(name string) bool { return slices.Contains(s.bound, name) }

// Notes returns what the expressions that were translated since the last call do otherwise than
// Kyverno's, in sentences without a period, and forgets them.
func (s *Scope) Notes() []string {
	notes := *s.notes
	*s.notes = nil
	return notes
}

// Note adds one to what Notes returns.
func (s *Scope) Note(text string) {
	if !slices.Contains(*s.notes, text) {
		*s.notes = append(*s.notes, text)
	}
}

// within calls a function with the name of a variable, which is taken meanwhile.
func within[T any](s *Scope, hint string, build func(name string) T) T {
	before := s.bound
	defer func() { s.bound = before }()
	return build(s.Bind(hint))
}
