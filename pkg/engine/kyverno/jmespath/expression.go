package jmespath

import (
	"cmp"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	gojmespath "github.com/kyverno/go-jmespath"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/limit"
)

// The bounds of an expression's text.
const (
	maxLength  = 64 << 10 // bytes
	maxNesting = 1_000    // brackets and operators that make the parser or the evaluator recurse
)

// Expression is a compiled expression: immutable and safe for concurrent use.
type Expression struct {
	text   string
	root   node
	facts  facts
	impure string

	readings readings // by the names of the data
	ofObject Reading  // where the data is an object
	isObject bool
}

// facts is what compiling finds out about an expression.
type facts struct {
	roots  []string // identifiers that are looked up in the data itself
	whole  bool     // the data as a whole is used: @, *, [*] ...
	builds bool     // the result may hold more than the data does
	impure []string // reasons, in the order of the text
}

// Compile parses an expression. The error is a *SyntaxError; calling a function
// that does not exist is one too.
func Compile(expr string) (*Expression, error) {
	ast, err := Parse(expr)
	if err != nil {
		return nil, err
	}
	c := compiler{}
	root := c.compile(ast, true)
	if c.err != nil {
		return nil, &SyntaxError{Expression: expr, Reason: c.err.Error()}
	}
	out := &Expression{text: expr, root: root, facts: c.facts, impure: strings.Join(c.facts.impure, "; ")}
	out.read(ast)
	return out, nil
}

// Parse returns the syntax tree of an expression. The error is a *SyntaxError; whether the functions
// exist that it calls is left open.
func Parse(expr string) (gojmespath.ASTNode, error) {
	if err := checkBounds(expr); err != nil {
		return gojmespath.ASTNode{}, &SyntaxError{Expression: expr, Reason: err.Error()}
	}
	ast, err := parse(expr)
	if err != nil {
		return ast, &SyntaxError{Expression: expr, Reason: strings.TrimPrefix(err.Error(), "SyntaxError: ")}
	}
	return ast, nil
}

// Functions are the names of all functions, sorted.
func Functions() []string { return slices.Sorted(maps.Keys(functions)) }

// parse calls the fork's parser, which indexes beyond its tokens on some
// incomplete texts.
func parse(expr string) (ast gojmespath.ASTNode, err error) {
	defer func() {
		if recover() != nil {
			err = fmt.Errorf("incomplete expression")
		}
	}()
	return gojmespath.NewParser().Parse(expr)
}

// checkBounds keeps absurd texts from the parser, which recurses.
func checkBounds(expr string) error {
	if len(expr) > maxLength {
		return &limit.Error{What: "bytes of expression", Max: maxLength}
	}
	nesting := 0
	var quote byte
	for i := 0; i < len(expr); i++ {
		c := expr[i]
		switch {
		case quote != 0 && c == '\\':
			i++
		case quote != 0:
			if c == quote {
				quote = 0
			}
		case c == '\'' || c == '"' || c == '`':
			quote = c
		case strings.IndexByte("([{!&*", c) >= 0:
			nesting++
		}
	}
	if nesting > maxNesting {
		return &limit.Error{What: "brackets and operators", Max: maxNesting}
	}
	return nil
}

// Search evaluates the expression on data, a JSON value or an Object. The result
// may share parts of the data; nothing in the data is modified. A missing key is
// a *NotFoundError unless the expression provides for it.
func (e *Expression) Search(in *Interpreter, data any) (any, error) {
	result, err := e.root.eval(in, data)
	if err = cmp.Or(err, in.clock.Steps(0)); err != nil {
		return nil, err
	}
	switch v := result.(type) {
	case float64:
		return canonical(v), nil
	case int:
		return int64(v), nil
	case Object:
		return v.Fields()
	}
	if e.facts.builds {
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
	return slices.Contains(e.facts.roots, name) || (e.facts.whole && mentions(e.text, name))
}

// Roots lists the names that the expression looks up in the data itself, in the order of the text.
func (e *Expression) Roots() []string { return e.facts.roots }

// mentions finds a name as a word of its own that is no field of something,
// which is how Kyverno finds the context entries that a query needs.
func mentions(text, name string) bool {
	if !strings.Contains(text, name) {
		return false
	}
	found, _ := regexp.MatchString(`(^|[^.\pL\pN_])`+regexp.QuoteMeta(name)+`($|[^\pL\pN_])`, text)
	return found
}
