package translate

import (
	"strings"
	"unicode"
)

// Form describes the characters that a string never contains, as far as known.
type Form uint8

// The forms of strings, each stricter than the one before.
const (
	AnyText Form = iota
	// PlainText has no quotes, backslashes or control characters, so that it is unchanged in a quoted YAML
	// string.
	PlainText
	// PathSegment also has no slash and no tilde, so that it is one part of a JSON pointer.
	PathSegment
)

func formOf(text string) Form {
	switch {
	case strings.ContainsAny(text, "\"'\\") || strings.ContainsFunc(text, unicode.IsControl):
		return AnyText
	case strings.ContainsAny(text, "/~"):
		return PlainText
	}
	return PathSegment
}

// Form returns the form of the type's strings, and of its numbers as strings.
func (t Type) Form() Form {
	if t.label || t.is(isNumber|isBool) {
		return PathSegment
	}
	return t.form
}

// formOfField is the form of a built-in field, if the server rejects other strings or they are useless.
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
