package jmespath

import (
	"slices"

	gojmespath "github.com/kyverno/go-jmespath"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
)

// Reading is how much of an object an expression may read.
type Reading int

// The readings. What names an object, its kind and its type count for nothing.
const (
	ReadsNothing Reading = iota
	// labels and other metadata, but not annotations as a whole, nor the one that holds the whole object
	ReadsMetadata
	ReadsMore
)

// place is what a part of an expression stands for: a part of what a name stands for, or a value of its own.
type place struct {
	root  string // the name; "" for all names
	level level
}

type level int

const (
	atNothing level = iota // a value of its own
	atNames                // all names
	atRequest
	atObject // or a list of objects
	atMetadata
	atAnnotations
)

// readings finds out what an expression may read, by the names that it looks up. What it does not understand
// counts as a read.
type readings struct {
	of    map[string]Reading // "" for all names
	names []string           // those that are looked up in the data itself, in the order of the text
}

func (r *readings) note(root string, reading Reading) { r.of[root] = max(r.of[root], reading) }

// use notes that a value is computed with, and returns a value of its own.
func (r *readings) use(p place) place {
	if p.level != atNothing {
		r.note(p.root, ReadsMore)
	}
	return place{}
}

// walk adds what an expression may read of the names in a place, and returns what it stands for.
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

// Reads returns what the expression may read of what a name stands for.
func (e *Expression) Reads(name string) Reading { return max(e.readings.of[name], e.readings.of[""]) }

// ReadsObject returns what the expression may read of an object, or of a list of some, that is its data, and
// whether its result is such an object.
func (e *Expression) ReadsObject() (reading Reading, isObject bool) {
	return e.ofObject, e.isObject
}

// setReadings completes the expression with what it may read.
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
