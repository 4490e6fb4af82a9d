package jmespath

import (
	"cmp"
	"errors"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	gojmespath "github.com/kyverno/go-jmespath"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/limit"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/randomtext"
)

// The bounds of an expression's text.
const (
	maxLength  = 64 << 10 // bytes
	maxNesting = 1_000    // levels of nodes, on which evaluating recurses
)

// Expression is a compiled expression: immutable and safe for concurrent use.
type Expression struct {
	text   string
	root   node
	builds bool   // the result may hold more than the data does
	impure string // as in NotIdempotent

	readings readings // by the names of the data
	ofObject Reading  // where the data is an object
	isObject bool
}

// Compile parses an expression. The error is a *SyntaxError; calling a function
// that does not exist is one too.
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
	out.read(ast)
	return out, nil
}

// Parse returns the syntax tree of an expression. The error is a *SyntaxError; whether the functions
// exist that it calls is left open.
func Parse(expr string) (ast gojmespath.ASTNode, err error) {
	defer func() {
		if recover() != nil { // the fork's parser indexes beyond its tokens on some incomplete expressions
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

// Functions are the names of all functions, sorted.
func Functions() []string { return slices.Sorted(maps.Keys(functions)) }

// Search evaluates the expression on data, a JSON value or an Object. The result
// may share parts of the data; nothing in the data is modified. A missing key is
// a *NotFoundError unless the expression provides for it.
func (e *Expression) Search(in *Interpreter, data any) (any, error) {
	result, err := e.root(in, data)
	if err = cmp.Or(err, in.clock.Steps(0)); err != nil {
		return nil, err
	}
	switch v := result.(type) {
	case float64:
		return canonical(v), nil
	case Object:
		return v.Fields()
	}
	if e.builds {
		err = limit.Value(result)
	}
	return result, err
}

// String returns the expression as it was written.
func (e *Expression) String() string { return e.text }

// NotIdempotent returns why the same data can give another result in another run,
// such as "reads the clock: time_now()"; empty where they cannot.
func (e *Expression) NotIdempotent() string { return e.impure }

// Uses reports whether the expression looks up a name in the data itself: request,
// target, element, a context entry. An expression that takes the data as a whole
// uses the names that its text mentions.
func (e *Expression) Uses(name string) bool {
	return slices.Contains(e.readings.names, name) || e.readings.of[""] != ReadsNothing && mentions(e.text, name)
}

// Roots lists the names that the expression looks up in the data itself, in the order of the text.
func (e *Expression) Roots() []string { return e.readings.names }

// mentions finds a name as a word of its own that is no field of something,
// which is how Kyverno finds the context entries that a query needs.
func mentions(text, name string) bool {
	found, _ := regexp.MatchString(`(^|[^.\pL\pN_])`+regexp.QuoteMeta(name)+`($|[^\pL\pN_])`, text)
	return found
}

// Interpreter is what expressions can see besides their data: a fixed clock and a
// seeded source of random values. It serves one evaluation: each use
// of random() draws the next value, so it is not for concurrent use.
type Interpreter struct {
	now    time.Time
	random *randomtext.Source
	clock  *limit.Clock
}

// New returns an interpreter for a moment and a seed. Two interpreters that are
// made alike answer the same series of queries alike.
func New(now time.Time, seed uint64) *Interpreter {
	return &Interpreter{now: now, random: randomtext.New(seed)}
}

// WithClock makes searches end when the time of a rule has passed. It returns the interpreter.
func (in *Interpreter) WithClock(c *limit.Clock) *Interpreter {
	in.clock = c
	return in
}

// Clock returns that of the rule; nil if there is none.
func (in *Interpreter) Clock() *limit.Clock { return in.clock }

// Object is data that hands out its fields when they are asked for. Data given
// to Search may be an Object in place of a map.
type Object interface {
	// Field returns a field, and whether there is one.
	Field(name string) (value any, found bool, err error)
	// Fields returns the whole object; an expression needs it that names @.
	Fields() (map[string]any, error)
}
