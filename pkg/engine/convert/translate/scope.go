package translate

import (
	"maps"
	"slices"
	"strings"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/convert/expr"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/diff"
)

// Language is a target language.
type Language int

// The target languages.
const (
	MutatingPolicy          Language = iota // Kyverno's
	MutatingAdmissionPolicy                 // Kubernetes', with fewer functions
)

// Options describe the objects that a rule matches.
type Options struct {
	Language Language
	// Kinds are the schemas of the kinds of the objects; zero if unknown.
	Kinds []diff.Type
	// Sure are places that always exist: "spec.template".
	Sure []string
	// Namespace is the expression of the request namespace in Kyverno's sense: for a Namespace, its own name.
	Namespace expr.Expr
	// Targets is set for expressions on the targets of a rule: object is the target, and request.object the
	// trigger. Target is the schema of the targets.
	Targets    bool
	Target     diff.Type
	TargetSure []string
	// Triggers is set for a rule with targets: Kyverno evaluates its trigger a second time, without oldObject.
	Triggers bool
	// Deleted is set if the rule matches only DELETE requests, which have only oldObject.
	Deleted bool
}

// Scope maps the names in Kyverno's expressions to CEL. It is not safe for concurrent use.
type Scope struct {
	options Options
	names   map[string]Value
	refused map[string]error // names without a translation
	bound   []string         // variables of the enclosing macros
	place   []string         // the path of {{@}}
	inserts []Value          // variables inside the current variable
	depth   int              // of the current node
	tests   bool             // the result is only compared, not written
	notes   *[]string
	size    *int // of all translated values
}

// maxSize bounds the number of parts of all values of a rule.
const maxSize = 200_000

// NewScope returns a scope with Kyverno's predefined variables: request, serviceAccountName,
// serviceAccountNamespace, and target if there is one.
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

// request is the admission request. Its object has the type of the policy's object.
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

// ofRequest is a request field that CEL names differently than Kyverno.
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

// Language returns the target language.
func (s *Scope) Language() Language { return s.options.Language }

// Child returns a scope with a copy of all names.
func (s *Scope) Child() *Scope {
	child := *s
	child.names = maps.Clone(s.names)
	child.bound = slices.Clone(s.bound)
	return &child
}

// At returns a scope for a string at a path of the patch, where {{@}} is the value at that path.
func (s *Scope) At(path ...string) *Scope {
	child := *s
	child.place = path
	return &child
}

// Define gives a name a value: a context entry or a foreach element.
func (s *Scope) Define(name string, v Value) { s.names[name] = v }

// Refuse marks a variable as having no CEL value, with a reason and an alternative.
func (s *Scope) Refuse(name, reason, instead string) {
	s.refused[name] = unsupported("the variable "+name, reason, instead).error
}

// Bind reserves a name for an enclosing macro's variable, such as c, and returns it or an unused one. The
// hint is the name of the list: containers.
func (s *Scope) Bind(hint string) string {
	name := s.fresh(hint)
	s.bound = append(s.bound, name)
	return name
}

// fresh is an unused name for a list element.
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

// Notes returns and clears the differences from Kyverno of the expressions translated since the last call, as
// sentences without a period.
func (s *Scope) Notes() []string {
	notes := *s.notes
	*s.notes = nil
	return notes
}

// Note adds a note for Notes.
func (s *Scope) Note(text string) {
	if !slices.Contains(*s.notes, text) {
		*s.notes = append(*s.notes, text)
	}
}

// within calls a function with a variable name that is reserved meanwhile.
func within[T any](s *Scope, hint string, build func(name string) T) T {
	before := s.bound
	defer func() { s.bound = before }()
	return build(s.Bind(hint))
}
