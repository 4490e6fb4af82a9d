package jmespath

import (
	"errors"
	"fmt"
	"slices"

	gojmespath "github.com/kyverno/go-jmespath"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/limit"
)

// compiler turns the parser's tree into nodes that evaluate themselves.
type compiler struct {
	facts facts
	depth int
}

// compile translates a node. atRoot is set where it is evaluated on the data
// itself, so that its identifiers are names of the context.
func (c *compiler) compile(ast gojmespath.ASTNode, atRoot bool) (node, error) {
	c.depth++
	defer func() { c.depth-- }()
	if c.depth > maxNesting {
		return nil, &limit.Error{What: "levels of nesting", Max: maxNesting}
	}
	switch ast.NodeType {
	case gojmespath.ASTField:
		return c.field(ast, atRoot)
	case gojmespath.ASTLiteral:
		return literalNode{canonicalTree(ast.Value)}, nil
	case gojmespath.ASTCurrentNode, gojmespath.ASTIdentity:
		c.facts.whole = c.facts.whole || atRoot
		return currentNode{}, nil
	case gojmespath.ASTIndex:
		index, ok := ast.Value.(int)
		return indexNode{index}, malformed(!ok)
	case gojmespath.ASTSlice:
		parts, ok := ast.Value.([]*int)
		if !ok || len(parts) != 3 {
			return nil, malformed(true)
		}
		return sliceNode{from: parts[0], to: parts[1], step: parts[2]}, nil
	case gojmespath.ASTFunctionExpression:
		return c.call(ast, atRoot)
	case gojmespath.ASTExpRef:
		return nil, errors.New("an expression reference (&) is only possible as the argument of a function")
	case gojmespath.ASTMultiSelectList, gojmespath.ASTMultiSelectHash:
		return c.multiSelect(ast, atRoot)
	case gojmespath.ASTNotExpression:
		operand, err := c.child(ast, 0, atRoot)
		return notNode{operand}, err
	case gojmespath.ASTComparator:
		return c.comparison(ast, atRoot)
	}
	return c.binary(ast, atRoot)
}

func (c *compiler) child(ast gojmespath.ASTNode, i int, atRoot bool) (node, error) {
	if i >= len(ast.Children) {
		return nil, malformed(true)
	}
	return c.compile(ast.Children[i], atRoot)
}

func malformed(is bool) error {
	if is {
		return errors.New("malformed expression")
	}
	return nil
}

func (c *compiler) field(ast gojmespath.ASTNode, atRoot bool) (node, error) {
	name, ok := ast.Value.(string)
	if !ok {
		return nil, malformed(true)
	}
	if atRoot && !slices.Contains(c.facts.roots, name) {
		c.facts.roots = append(c.facts.roots, name)
	}
	return fieldNode{name: name, missing: &NotFoundError{Key: name}}, nil
}

// binary translates the nodes that evaluate their second child on the result of
// the first, and the two that evaluate both on the same value.
func (c *compiler) binary(ast gojmespath.ASTNode, atRoot bool) (node, error) {
	same := ast.NodeType == gojmespath.ASTOrExpression || ast.NodeType == gojmespath.ASTAndExpression
	left, err := c.child(ast, 0, atRoot)
	if err != nil {
		return nil, err
	}
	if ast.NodeType == gojmespath.ASTFlatten {
		c.facts.builds = true
		return flattenNode{left}, nil
	}
	_, passesOn := left.(currentNode)
	through := passesOn && atRoot && !projects(ast.NodeType)
	right, err := c.child(ast, 1, atRoot && same || through)
	if err != nil {
		return nil, err
	}
	switch ast.NodeType {
	case gojmespath.ASTSubexpression, gojmespath.ASTIndexExpression:
		return subNode{left, right}, nil
	case gojmespath.ASTPipe:
		return pipeNode{left, right}, nil
	case gojmespath.ASTOrExpression:
		return orNode{left, right}, nil
	case gojmespath.ASTAndExpression:
		return andNode{left, right}, nil
	case gojmespath.ASTProjection:
		c.facts.builds = true
		return projectionNode{left, right}, nil
	case gojmespath.ASTValueProjection:
		c.facts.builds = true
		return valuesNode{left, right}, nil
	case gojmespath.ASTFilterProjection:
		c.facts.builds = true
		condition, err := c.child(ast, 2, false)
		return filterNode{left, right, condition}, err
	}
	return nil, fmt.Errorf("unknown construct %v", ast.NodeType)
}

func projects(t gojmespath.ASTNodeType) bool {
	return t == gojmespath.ASTProjection || t == gojmespath.ASTValueProjection || t == gojmespath.ASTFilterProjection
}

func (c *compiler) multiSelect(ast gojmespath.ASTNode, atRoot bool) (node, error) {
	c.facts.builds = true
	members := make([]node, len(ast.Children))
	keys := make([]string, len(ast.Children))
	for i, child := range ast.Children {
		if ast.NodeType == gojmespath.ASTMultiSelectHash {
			key, ok := child.Value.(string)
			if !ok || len(child.Children) != 1 {
				return nil, malformed(true)
			}
			keys[i], child = key, child.Children[0]
		}
		member, err := c.compile(child, atRoot)
		if err != nil {
			return nil, err
		}
		members[i] = member
	}
	if ast.NodeType == gojmespath.ASTMultiSelectHash {
		return hashNode{keys: keys, members: members}, nil
	}
	return listNode{members}, nil
}

// comparison translates a comparison. Its operator is known by the name of the
// fork's token type, which is not exported.
func (c *compiler) comparison(ast gojmespath.ASTNode, atRoot bool) (node, error) {
	left, err := c.child(ast, 0, atRoot)
	if err != nil {
		return nil, err
	}
	right, err := c.child(ast, 1, atRoot)
	if err != nil {
		return nil, err
	}
	switch fmt.Sprint(ast.Value) {
	case "tEQ":
		return equalNode{left: left, right: right, want: true}, nil
	case "tNE":
		return equalNode{left: left, right: right, want: false}, nil
	case "tLT":
		return orderNode{left, right, func(order int) bool { return order < 0 }}, nil
	case "tLTE":
		return orderNode{left, right, func(order int) bool { return order <= 0 }}, nil
	case "tGT":
		return orderNode{left, right, func(order int) bool { return order > 0 }}, nil
	case "tGTE":
		return orderNode{left, right, func(order int) bool { return order >= 0 }}, nil
	}
	return nil, malformed(true)
}

func (c *compiler) call(ast gojmespath.ASTNode, atRoot bool) (node, error) {
	name, ok := ast.Value.(string)
	if !ok {
		return nil, malformed(true)
	}
	f, ok := lookupFunction(name)
	if !ok {
		return nil, fmt.Errorf("unknown function: %s", name)
	}
	c.facts.builds = true
	if reason := f.NotIdempotent(); reason != "" && !slices.Contains(c.facts.impure, reason) {
		c.facts.impure = append(c.facts.impure, reason)
	}
	call := callNode{function: f, args: make([]node, len(ast.Children))}
	for i, child := range ast.Children {
		var err error
		if child.NodeType == gojmespath.ASTExpRef {
			var inner node
			inner, err = c.child(child, 0, false)
			call.args[i] = referenceNode{inner}
		} else {
			call.args[i], err = c.compile(child, atRoot)
		}
		if err != nil {
			return nil, err
		}
	}
	return call, nil
}
