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
	child := func(i int) node { return c.compile(ast.Children[i]) }
	switch ast.NodeType {
	case gojmespath.ASTField:
		name := ast.Value.(string)
		return fieldNode{name: name, missing: &NotFoundError{Key: name}}
	case gojmespath.ASTLiteral:
		return literalNode{canonicalTree(ast.Value)}
	case gojmespath.ASTCurrentNode, gojmespath.ASTIdentity:
		return currentNode{}
	case gojmespath.ASTIndex:
		return indexNode{ast.Value.(int)}
	case gojmespath.ASTSlice:
		parts := ast.Value.([]*int)
		return sliceNode{from: parts[0], to: parts[1], step: parts[2]}
	case gojmespath.ASTFunctionExpression:
		return c.call(ast)
	case gojmespath.ASTExpRef:
		return c.fail(errors.New("an expression reference (&) is only possible as the argument of a function"))
	case gojmespath.ASTMultiSelectList:
		c.builds = true
		return listNode{c.all(ast.Children)}
	case gojmespath.ASTMultiSelectHash:
		return c.hash(ast)
	case gojmespath.ASTNotExpression:
		return notNode{child(0)}
	case gojmespath.ASTOrExpression:
		return orNode{child(0), child(1)}
	case gojmespath.ASTAndExpression:
		return andNode{child(0), child(1)}
	case gojmespath.ASTComparator:
		return comparison(fmt.Sprint(ast.Value), child(0), child(1))
	}
	return c.chain(ast)
}

func (c *compiler) all(asts []gojmespath.ASTNode) []node {
	nodes := make([]node, len(asts))
	for i, ast := range asts {
		nodes[i] = c.compile(ast)
	}
	return nodes
}

// chain translates the nodes that evaluate their second child on the result of the first.
func (c *compiler) chain(ast gojmespath.ASTNode) node {
	if len(ast.Children) == 0 { // some incomplete expressions pass the parser
		return c.fail(errors.New("malformed expression"))
	}
	left := c.compile(ast.Children[0])
	switch ast.NodeType {
	case gojmespath.ASTSubexpression, gojmespath.ASTIndexExpression:
		return subNode{left, c.compile(ast.Children[1])}
	case gojmespath.ASTPipe:
		return pipeNode{left, c.compile(ast.Children[1])}
	}
	c.builds = true
	switch ast.NodeType {
	case gojmespath.ASTFlatten:
		return flattenNode{left}
	case gojmespath.ASTProjection:
		return projectionNode{left, c.compile(ast.Children[1])}
	case gojmespath.ASTValueProjection:
		return valuesNode{left, c.compile(ast.Children[1])}
	case gojmespath.ASTFilterProjection:
		return filterNode{left, c.compile(ast.Children[1]), c.compile(ast.Children[2])}
	}
	return c.fail(fmt.Errorf("unknown construct %v", ast.NodeType))
}

func (c *compiler) hash(ast gojmespath.ASTNode) node {
	c.builds = true
	var hash hashNode
	for _, pair := range ast.Children {
		hash.keys = append(hash.keys, pair.Value.(string))
		hash.members = append(hash.members, c.compile(pair.Children[0]))
	}
	return hash
}

// comparison translates a comparison. Its operator is known by the name of the
// fork's token type, which is not exported.
func comparison(operator string, left, right node) node {
	switch operator {
	case "tEQ", "tNE":
		return equalNode{left: left, right: right, want: operator == "tEQ"}
	case "tLT":
		return orderNode{left, right, func(order int) bool { return order < 0 }}
	case "tLTE":
		return orderNode{left, right, func(order int) bool { return order <= 0 }}
	case "tGT":
		return orderNode{left, right, func(order int) bool { return order > 0 }}
	}
	return orderNode{left, right, func(order int) bool { return order >= 0 }}
}

func (c *compiler) call(ast gojmespath.ASTNode) node {
	name := ast.Value.(string)
	f, ok := functions[name]
	if !ok {
		return c.fail(fmt.Errorf("unknown function: %s", name))
	}
	c.builds = true
	if f.notIdempotent != "" && !slices.Contains(c.impure, f.notIdempotent) {
		c.impure = append(c.impure, f.notIdempotent)
	}
	call := callNode{name: name, function: f}
	for _, child := range ast.Children {
		if child.NodeType == gojmespath.ASTExpRef {
			call.args = append(call.args, referenceNode{c.compile(child.Children[0])})
		} else {
			call.args = append(call.args, c.compile(child))
		}
	}
	return call
}
