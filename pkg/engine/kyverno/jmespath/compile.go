package jmespath

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	gojmespath "github.com/kyverno/go-jmespath"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/limit"
)

// compiler turns the parser's tree into nodes that evaluate themselves.
type compiler struct {
	builds bool     // the result may hold more than the data does
	impure []string // why the same data can give another result in another run, in the order of the text
	depth  int
	err    error // the first one
}

func (c *compiler) fail(err error) node {
	c.err = cmp.Or(c.err, err)
	return nil
}

func (c *compiler) compile(ast gojmespath.ASTNode) node {
	c.depth++
	defer func() { c.depth-- }()
	if c.depth > maxNesting {
		return c.fail(&limit.Error{What: "levels of nesting", Max: maxNesting})
	}
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
	case gojmespath.ASTAndExpression: // swallows a missing key on its left alone, as the fork does
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
		return build(c.all(ast.Children), func(items []any) any { return items })
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

// all compiles nodes where missing keys are null.
func (c *compiler) all(asts []gojmespath.ASTNode) []node {
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
	return build(c.all(members), func(items []any) any {
		hash := make(map[string]any, len(pairs))
		for i, pair := range pairs {
			hash[pair.Value.(string)] = items[i]
		}
		return hash
	})
}

// comparison returns how two values are compared. An operator is known by the name of the fork's token type, which is not
// exported. Orderings are null unless both sides are numbers.
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
