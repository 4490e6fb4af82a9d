package engine

import (
	"regexp"
	"strconv"
	"strings"

	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/value"
)

// PathString is a path as people write it:
// `spec.containers[web].ports[containerPort=80,protocol=TCP]`,
// `metadata.labels["app.kubernetes.io/name"]`, `metadata.finalizers[=keep]`,
// `spec.args[0]`. Two different paths never have the same text, and what cannot be
// printed in it is escaped: control characters, and those of no width. The path of a whole object is the empty text.
func PathString(p fieldpath.Path) string { return pathText(p, elementText) }

// PathPattern returns a path as PathString does, with [*] for the elements of lists: it is equal for
// the same field of several elements.
func PathPattern(p fieldpath.Path) string {
	return pathText(p, func(fieldpath.PathElement) string { return "*" })
}

// pathText is a path with its list elements as a function names them.
func pathText(p fieldpath.Path, element func(fieldpath.PathElement) string) string {
	b := make([]byte, 0, 64)
	for _, e := range p {
		switch {
		case e.FieldName != nil && isPlainName(*e.FieldName):
			if len(b) > 0 {
				b = append(b, '.')
			}
			b = append(b, *e.FieldName...)
		case e.FieldName != nil:
			b = append(strconv.AppendQuote(append(b, '['), *e.FieldName), ']')
		default:
			b = append(append(append(b, '['), element(e)...), ']')
		}
	}
	return string(b)
}

// isPlainName reports whether a field's name needs no quotes. (A regular expression takes some 4 % of a run: all changes are grouped by paths.)
func isPlainName(name string) bool {
	const letters, more = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_", "0123456789-"
	return name != "" && strings.Trim(name, letters+more) == "" && !strings.Contains(more, name[:1])
}

// plainValue matches a value that needs no quotes in a list element's key: nothing in it can be taken for the
// syntax around it, nor for a control sequence.
var plainValue = regexp.MustCompile(`^[A-Za-z0-9_./:@-]+$`)

// elementText names the element of a list.
func elementText(e fieldpath.PathElement) string {
	switch {
	case e.Key != nil:
		return keyText(*e.Key)
	case e.Value != nil:
		return "=" + valueText(*e.Value)
	case e.Index != nil:
		return strconv.Itoa(*e.Index)
	}
	return ""
}

// keyText names a list element. A lone `name` stands for itself, unless it could
// be taken for an index.
func keyText(key value.FieldList) string {
	if len(key) == 1 && key[0].Name == "name" && key[0].Value.IsString() {
		name := key[0].Value.AsString()
		if plainValue.MatchString(name) && strings.Trim(name, "0123456789") != "" {
			return name
		}
	}
	parts := make([]string, len(key))
	for i, f := range key {
		parts[i] = f.Name + "=" + valueText(f.Value)
	}
	return strings.Join(parts, ",")
}

// valueText quotes strings that would otherwise read as something else.
func valueText(v value.Value) string {
	if !v.IsString() {
		return value.ToString(v)
	}
	s := v.AsString()
	_, notNumber := strconv.ParseFloat(s, 64)
	if s == "true" || s == "false" || s == "null" || notNumber == nil || !plainValue.MatchString(s) {
		return strconv.Quote(s)
	}
	return s
}

// FieldNames returns the names of the fields that a path begins with, up to its
// first list element.
func FieldNames(p fieldpath.Path) []string {
	var out []string
	for _, e := range p {
		if e.FieldName == nil {
			break
		}
		out = append(out, *e.FieldName)
	}
	return out
}
