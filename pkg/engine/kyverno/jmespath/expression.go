package jmespath

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	gojmespath "github.com/kyverno/go-jmespath"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/limit"
)

// maxLength bounds an expression in bytes, and so its depth, on which evaluation recurses.
const maxLength = 64 << 10

// Expression is a compiled expression: immutable and safe for concurrent use.
type Expression struct {
	text   string
	root   node
	builds bool   // the result may be larger than the data
	impure string // as in NotIdempotent

	readings readings // by names in the data
	ofObject Reading  // if the data is an object
	isObject bool
}

// Compile parses an expression. The error is a *SyntaxError, also for unknown functions.
func Compile(expr string) (*Expression, error) {
	ast, err := Parse(expr)
	if err != nil {
		return nil, err
	}
	c := compiler{}
	root := c.compile(ast)
	if c.err != nil {
		return nil, &SyntaxError{Expression: expr, Reason: c.err.Error()}
	}
	out := &Expression{text: expr, root: root, builds: c.builds, impure: strings.Join(c.impure, "; ")}
	out.setReadings(ast)
	return out, nil
}

var rendered = engine.Cached(Compile) //nolint:gochecknoglobals // immutable

// CompileRendered is Compile with a cache, for rendered templates.
func CompileRendered(expr string) (*Expression, error) { return rendered(expr) }

// Parse returns the syntax tree of an expression. The error is a *SyntaxError; function names are not
// checked.
func Parse(expr string) (ast gojmespath.ASTNode, err error) {
	defer func() {
		if recover() != nil { // the fork's parser reads beyond its tokens on some incomplete expressions
			err = errors.New("incomplete expression")
		}
		if err != nil {
			err = &SyntaxError{Expression: expr, Reason: strings.TrimPrefix(err.Error(), "SyntaxError: ")}
		}
	}()
	if len(expr) > maxLength {
		return ast, &limit.Error{What: "bytes of expression", Max: maxLength}
	}
	return gojmespath.NewParser().Parse(expr)
}

// Functions returns the names of all functions, sorted.
func Functions() []string { return slices.Sorted(maps.Keys(functions)) }

// Search evaluates the expression on data, a JSON value or an Object. The result may share parts of the data;
// nothing in the data is modified. A missing key is a *NotFoundError unless the expression handles it.
func (e *Expression) Search(in *Interpreter, data any) (any, error) {
	result, err := e.root(in, data)
	if err = cmp.Or(err, in.clock.Steps(0)); err != nil {
		return nil, err
	}
	switch v := result.(type) {
	case float64:
		return canonical(v), nil
	case Object:
		result, err = v.Fields()
	}
	if e.builds && err == nil {
		err = limit.Value(result)
	}
	if err != nil {
		return nil, err
	}
	return asFloats(result), nil
}

// String returns the expression as it was written.
func (e *Expression) String() string { return e.text }

// NotIdempotent returns why the same data can give another result in another run, such as "reads the clock:
// time_now()"; else it is empty.
func (e *Expression) NotIdempotent() string { return e.impure }

// Uses reports whether the expression looks up a name in the data: request, target, element, a context entry.
// An expression that takes all of the data uses the names that it mentions.
func (e *Expression) Uses(name string) bool {
	return slices.Contains(e.readings.names, name) || e.readings.of[""] != ReadsNothing && mentions(e.text, name)
}

// Roots lists the names that the expression looks up in the data, in their order.
func (e *Expression) Roots() []string { return e.readings.names }

// mentions finds a name as a whole word that is not a field, which is how Kyverno finds the context entries
// of a query.
func mentions(text, name string) bool {
	found, _ := regexp.MatchString(`(^|[^.\pL\pN_])`+regexp.QuoteMeta(name)+`($|[^\pL\pN_])`, text)
	return found
}

// Interpreter is the environment of expressions: a fixed clock and a seeded source of random values. It
// serves one evaluation and is not safe for concurrent use: each random() draws the next value.
type Interpreter struct {
	now    time.Time
	random *engine.Random
	clock  *limit.Clock
}

// New returns an interpreter for a time and a seed, whose searches end when the rule's clock runs out; the
// clock may be nil. Interpreters made alike give the same answers to the same series of queries.
func New(now time.Time, seed uint64, c *limit.Clock) *Interpreter {
	return &Interpreter{now, engine.NewRandom(seed), c}
}

// Clock returns the clock of the rule; it may be nil.
func (in *Interpreter) Clock() *limit.Clock { return in.clock }

// Object is data that loads its fields on demand. Search accepts an Object in place of a map.
type Object interface {
	// Field returns a field, and whether there is one.
	Field(name string) (value any, found bool, err error)
	// Fields returns the whole object, for expressions that use @.
	Fields() (map[string]any, error)
}

type compiler struct {
	builds bool     // the result may be larger than the data
	impure []string // why the same data can give another result in another run, in the order of the expression
	err    error    // the first one
}

func (c *compiler) fail(err error) node {
	c.err = cmp.Or(c.err, err)
	return nil
}

func (c *compiler) compile(ast gojmespath.ASTNode) node {
	child := func(i int) node {
		if i >= len(ast.Children) { // some incomplete expressions pass the parser
			return c.fail(errors.New("malformed expression"))
		}
		return c.compile(ast.Children[i])
	}
	switch ast.NodeType {
	case gojmespath.ASTField:
		return field(ast.Value.(string))
	case gojmespath.ASTLiteral:
		return literal(canonicalTree(ast.Value))
	case gojmespath.ASTCurrentNode, gojmespath.ASTIdentity:
		return current
	case gojmespath.ASTIndex:
		return index(ast.Value.(int))
	case gojmespath.ASTSlice:
		return slice(ast.Value.([]*int))
	case gojmespath.ASTExpRef:
		return c.fail(errors.New("an expression reference (&) is only possible as the argument of a function"))
	case gojmespath.ASTNotExpression:
		return then(lenient(child(0)), not)
	case gojmespath.ASTOrExpression:
		return either(lenient(child(0)), lenient(child(1)), true)
	case gojmespath.ASTAndExpression: // swallows a missing key only on its left, as the fork does
		return either(lenient(child(0)), child(1), false)
	case gojmespath.ASTComparator:
		return compared(lenient(child(0)), lenient(child(1)), comparison(fmt.Sprint(ast.Value)))
	case gojmespath.ASTSubexpression, gojmespath.ASTIndexExpression:
		return then(child(0), child(1))
	case gojmespath.ASTPipe:
		return then(lenient(child(0)), lenient(child(1)))
	}
	c.builds = true
	switch ast.NodeType {
	case gojmespath.ASTMultiSelectList:
		return build(c.compileAll(ast.Children), func(items []any) any { return items })
	case gojmespath.ASTMultiSelectHash:
		return c.hash(ast.Children)
	case gojmespath.ASTFunctionExpression:
		return c.call(ast)
	case gojmespath.ASTFlatten:
		return then(tolerant(child(0)), flatten)
	case gojmespath.ASTProjection:
		return project(lenient(child(0)), lenient(child(1)))
	case gojmespath.ASTValueProjection:
		return project(then(tolerant(child(0)), eachValue), lenient(child(1)))
	case gojmespath.ASTFilterProjection:
		return project(then(tolerant(child(0)), filter(lenient(child(2)))), lenient(child(1)))
	}
	return c.fail(errors.New("malformed expression"))
}

// compileAll compiles nodes that turn missing keys into null.
func (c *compiler) compileAll(asts []gojmespath.ASTNode) []node {
	nodes := make([]node, len(asts))
	for i, ast := range asts {
		nodes[i] = lenient(c.compile(ast))
	}
	return nodes
}

func (c *compiler) hash(pairs []gojmespath.ASTNode) node {
	members := make([]gojmespath.ASTNode, len(pairs))
	for i, pair := range pairs {
		members[i] = pair.Children[0]
	}
	return build(c.compileAll(members), func(items []any) any {
		hash := make(map[string]any, len(pairs))
		for i, pair := range pairs {
			hash[pair.Value.(string)] = items[i]
		}
		return hash
	})
}

// comparison returns the function of an operator, given by the name of the fork's unexported token type.
// Orderings are null unless both sides are numbers.
func comparison(operator string) func(in *Interpreter, a, b any) any {
	if operator == "tEQ" || operator == "tNE" {
		return func(in *Interpreter, a, b any) any { return Equal(in.clock, a, b) == (operator == "tEQ") }
	}
	holds := map[string][]int{"tLT": {-1}, "tLTE": {-1, 0}, "tGT": {1}, "tGTE": {1, 0}}[operator]
	return func(_ *Interpreter, a, b any) any {
		if order, ok := compareNumbers(a, b); ok {
			return slices.Contains(holds, order)
		}
		return nil
	}
}

func (c *compiler) call(ast gojmespath.ASTNode) node {
	name := ast.Value.(string)
	f, ok := functions[name]
	if !ok {
		return c.fail(fmt.Errorf("unknown function: %s", name))
	}
	if f.notIdempotent != "" && !slices.Contains(c.impure, f.notIdempotent) {
		c.impure = append(c.impure, f.notIdempotent)
	}
	args := make([]node, len(ast.Children))
	for i, child := range ast.Children {
		if child.NodeType == gojmespath.ASTExpRef {
			args[i] = deferred(lenient(c.compile(child.Children[0])))
		} else {
			args[i] = lenient(c.compile(child))
		}
	}
	return call(name, f, args)
}
