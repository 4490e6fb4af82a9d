package location

import (
	"fmt"
	"strconv"
	"strings"
)

// Path is a parsed location: a Field, then Fields and Lists. No List comes
// first or after another List.
type Path []Node

// Node is one step of a path: a Field or a List.
type Node interface {
	// String is how the node is written in a location.
	String() string
	isNode()
}

// Field is a field of an object.
type Field string

// List is an element of the list that the field before it holds: the one whose
// Key is Value, or every one.
type List struct {
	Key   string
	Value any // a string or an int64; nil for every element
}

// Glob reports whether the node stands for every element.
func (l List) Glob() bool { return l.Value == nil }

func (Field) isNode() {}
func (List) isNode()  {}

// String quotes the name where it has to be.
func (f Field) String() string { return quoted(string(f)) }

// String is like "[name: foo]".
func (l List) String() string {
	value := "*"
	switch v := l.Value.(type) {
	case string:
		value = quoted(v)
	case int64:
		value = strconv.FormatInt(v, 10)
	}
	return "[" + quoted(l.Key) + ": " + value + "]"
}

// String is the location in its normal form, which parses to the same path.
func (p Path) String() string {
	var b strings.Builder
	for i, n := range p {
		if _, isField := n.(Field); isField && i > 0 {
			b.WriteByte('.')
		}
		b.WriteString(n.String())
	}
	return b.String()
}

// HasPrefix reports whether the path begins with the nodes of another one.
func (p Path) HasPrefix(prefix Path) bool {
	if len(prefix) > len(p) {
		return false
	}
	for i := range prefix {
		if p[i] != prefix[i] {
			return false
		}
	}
	return true
}

// Last is the last node, nil in an empty path.
func (p Path) Last() Node {
	if len(p) == 0 {
		return nil
	}
	return p[len(p)-1]
}

// quoted is the text of a name: bare where that is a word, else in quotes.
func quoted(name string) string {
	if names.MatchString(name) {
		return name
	}
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(name) + `"`
}

func place(p Path) string {
	if len(p) == 0 {
		return "the object itself"
	}
	return p.String()
}

// mismatch is the error of a value of another type than the location takes it for: Gatekeeper's text, and the
// place.
func (w *walker) mismatch(want string, got any, depth int) error {
	return fmt.Errorf("mismatch between path entry (type: %s) and received object (type: %T). Path: %s (at %s)", want, got, w.Path[depth], place(w.Path[:depth]))
}
