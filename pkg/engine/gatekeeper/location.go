package gatekeeper

import (
	"slices"
	"strconv"
	"strings"
)

// location is a parsed spec.location. A listNode is never first, nor after another one.
type location []node

// node is one step of a location: a fieldNode or a listNode.
type node interface {
	// String returns the node in the notation of locations.
	String() string
	isNode()
}

type fieldNode string

// listNode is an element of the preceding field's list: the one whose Key is Value, or every element.
type listNode struct {
	Key   string
	Value any // a string or an int64; nil for every element
}

// glob reports whether the node stands for every element.
func (l listNode) glob() bool { return l.Value == nil }

func (fieldNode) isNode() {}
func (listNode) isNode()  {}

// String quotes the name if necessary.
func (f fieldNode) String() string { return quoteName(string(f)) }

// String is like "[name: foo]".
func (l listNode) String() string {
	value := "*"
	switch v := l.Value.(type) {
	case string:
		value = quoteName(v)
	case int64:
		value = strconv.FormatInt(v, 10)
	}
	return "[" + quoteName(l.Key) + ": " + value + "]"
}

// String returns the location in its normal form, which parses to the same path.
func (p location) String() string {
	var b strings.Builder
	for i, n := range p {
		if _, isField := n.(fieldNode); isField && i > 0 {
			b.WriteByte('.')
		}
		b.WriteString(n.String())
	}
	return b.String()
}

func (p location) hasPrefix(prefix location) bool {
	return len(prefix) <= len(p) && slices.Equal(p[:len(prefix)], prefix)
}

// last returns the last node; nil for an empty location.
func (p location) last() node {
	if len(p) == 0 {
		return nil
	}
	return p[len(p)-1]
}

// quoteName returns a name as a bare word if possible, else in quotes.
func quoteName(name string) string {
	if nameForm.MatchString(name) {
		return name
	}
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(name) + `"`
}

// place returns the location for messages.
func (p location) place() string {
	if len(p) == 0 {
		return "the object itself"
	}
	return p.String()
}
