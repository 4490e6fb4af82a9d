package jmespath

import (
	"slices"

	gojmespath "github.com/kyverno/go-jmespath"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
)

// Reading is how much of an object an expression may read.
type Reading int

// The readings. Names, kinds and types of objects do not count.
const (
	ReadsNothing Reading = iota
	// labels and other metadata, without annotations as a whole or the annotation with the whole object
	ReadsMetadata
	ReadsMore
)

// place is the value of a subexpression: a part of a named value, or a computed value.
type place struct {
	root  string // the name; "" for all names
	level level
}

type level int

const (
	atNothing level = iota // a computed value
	atNames                // all names
	atRequest
	atObject // or a list of objects
	atMetadata
	atAnnotations
)

// readings collects, by name, how much an expression may read. Unknown constructs count as reads.
type readings struct {
	of    map[string]Reading // "" for all names
	names []string           // the names looked up in the data, in the order of the expression
}

func (r *readings) note(root string, reading Reading) { r.of[root] = max(r.of[root], reading) }

// use notes that a value is computed with, and returns the place of a computed value.
func (r *readings) use(p place) place {
	if p.level != atNothing {
		r.note(p.root, ReadsMore)
	}
	return place{}
}

// walk adds the reads of a subexpression at a place, and returns the place of its value.
func (r *readings) walk(ast gojmespath.ASTNode, at place) place {
	child := func(i int, at place) place {
		if i >= len(ast.Children) {
			return place{}
		}
		return r.walk(ast.Children[i], at)
	}
	switch ast.NodeType {
	case gojmespath.ASTField:
		name, _ := ast.Value.(string)
		return r.field(at, name)
	case gojmespath.ASTLiteral:
		return place{}
	case gojmespath.ASTCurrentNode, gojmespath.ASTIdentity, gojmespath.ASTIndex, gojmespath.ASTSlice:
		return at
	case gojmespath.ASTFlatten:
		return child(0, at)
	case gojmespath.ASTSubexpression, gojmespath.ASTIndexExpression, gojmespath.ASTPipe,
		gojmespath.ASTProjection:
		return child(1, child(0, at))
	case gojmespath.ASTFilterProjection:
		items := child(0, at)
		r.use(child(2, items))
		return child(1, items)
	case gojmespath.ASTValueProjection:
		return child(1, r.use(child(0, at)))
	case gojmespath.ASTOrExpression, gojmespath.ASTAndExpression:
		left, right := child(0, at), child(1, at)
		if left.level == atNothing {
			return right
		}
		if right.level != atNothing && left != right {
			r.use(right)
		}
		return left
	case gojmespath.ASTExpRef:
		at = place{} // of arguments that were used
	}
	for i := range ast.Children {
		r.use(child(i, at))
	}
	return place{}
}

func (r *readings) field(of place, name string) place {
	switch of.level {
	case atNames:
		if !slices.Contains(r.names, name) {
			r.names = append(r.names, name)
		}
		if name == "request" {
			return place{name, atRequest}
		}
		return place{name, atObject}
	case atRequest:
		if name == "object" || name == "oldObject" {
			of.level = atObject
			return of
		}
	case atObject:
		switch name {
		case "metadata":
			of.level = atMetadata
			return of
		case "items":
			return of
		case "apiVersion", "kind", "type":
		default:
			r.note(of.root, ReadsMore)
		}
	case atMetadata:
		switch name {
		case "annotations":
			of.level = atAnnotations
			return of
		case "name", "namespace", "uid":
		default:
			r.note(of.root, ReadsMetadata)
		}
	case atAnnotations:
		if r.note(of.root, ReadsMetadata); name == engine.LastApplied {
			r.note(of.root, ReadsMore)
		}
	}
	return place{}
}

// Reads returns how much the expression may read of a named value.
func (e *Expression) Reads(name string) Reading { return max(e.readings.of[name], e.readings.of[""]) }

// ReadsObject returns how much the expression may read of an object, or a list of objects, that is its data,
// and whether its result is such an object.
func (e *Expression) ReadsObject() (reading Reading, isObject bool) {
	return e.ofObject, e.isObject
}

func (e *Expression) setReadings(ast gojmespath.ASTNode) {
	e.readings = readings{of: map[string]Reading{}}
	e.readings.use(e.readings.walk(ast, place{level: atNames}))
	object := readings{of: map[string]Reading{}}
	result := object.walk(ast, place{root: "@", level: atObject})
	if e.isObject = result.level == atObject; !e.isObject {
		object.use(result)
	}
	e.ofObject = object.of["@"]
}
