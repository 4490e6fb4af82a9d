package translate

import (
	"strings"
	"unicode"
)

// Form is what a string never has in it, as far as is known.
type Form uint8

// The forms of strings, each with all that the one before has not.
const (
	AnyText Form = iota
	// PlainText has no quotes, no backslashes and no control characters, so that it is the same in a quoted
	// text of YAML.
	PlainText
	// PathSegment has no slash and no tilde either, so that it is one part of a JSON pointer.
	PathSegment
)

// formOf is the form of a constant.
func formOf(text string) Form {
	switch {
	case strings.ContainsAny(text, "\"'\\") || strings.ContainsFunc(text, unicode.IsControl):
		return AnyText
	case strings.ContainsAny(text, "/~"):
		return PlainText
	}
	return PathSegment
}

// Form is that of the strings of the type, and of what is made of its numbers.
func (t Type) Form() Form {
	if t.label || t.is(isNumber|isBool) {
		return PathSegment
	}
	return t.form
}

// formOfField is the form of a field of a built-in kind, of which the server takes no other strings, or that
// is of no use with others.
func formOfField(name string) Form {
	switch name {
	case "name", "generateName", "namespace", "uid", "kind", "host", "hosts", "hostname",
		"hostnames", "nodeName", "secretName", "claimName", "serviceName",
		"serviceAccountName", "storageClassName", "ingressClassName", "protocol", "medium",
		"effect", "operator", "clusterIP", "ip", "podIP", "hostIP":
		return PathSegment
	case "apiVersion", "image", "finalizers":
		return PlainText
	}
	return AnyText
}
