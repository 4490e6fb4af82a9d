package expr

import (
	"math"
	"strconv"
	"strings"
)

// Kind is what CEL's type checker knows of an expression.
type Kind int

// The kinds of expressions.
const (
	Dyn Kind = iota // not known before it is evaluated
	Text
	Integer
	Double
	Boolean
	NullKind
	ListKind
	MapKind
	OptionalKind
	OtherKind
	// OpenKind is a type that the checker leaves open: it takes the first form of an overloaded function for
	// it, whatever the value is. Elements of what flatten returns are such.
	OpenKind
)

// isOpen reports whether the type of an expression is left open.
func isOpen(e Expr) bool {
	switch e := e.(type) {
	case typed:
		return e.kind == OpenKind
	case index:
		return isOpen(e.of) || HasOpenElements(e.of)
	case call:
		switch e.name {
		case "value", "orValue":
			return isOpen(e.of)
		case "first", "last":
			return HasOpenElements(e.of)
		}
	}
	return false
}

// HasOpenElements reports whether the elements of a list are of an OpenKind.
func HasOpenElements(list Expr) bool {
	c, ok := list.(call)
	if !ok {
		return false
	}
	switch c.name {
	case "flatten":
		return true
	case "filter", "reverse", "slice", "sort", "sortBy", "distinct", "orValue":
		return HasOpenElements(c.of)
	}
	return false
}

// KindOf returns what is known of an expression's type.
func KindOf(e Expr) Kind {
	switch e := e.(type) {
	case literal:
		return e.kind
	case chain, not:
		return Boolean
	case typed:
		if e.kind == OpenKind {
			return Dyn
		}
		return e.kind
	case minus:
		return KindOf(e.of)
	case list:
		return ListKind
	case object:
		return MapKind
	case sel:
		if e.optional || IsOptional(e.of) {
			return OptionalKind
		}
	case index:
		if e.optional || IsOptional(e.of) {
			return OptionalKind
		}
	case binary:
		return e.kind()
	case cond:
		if then := KindOf(e.then); then == KindOf(e.otherwise) {
			return then
		}
	case call:
		return e.kind()
	}
	return Dyn
}

func (b binary) kind() Kind {
	left, right := KindOf(b.left), KindOf(b.right)
	switch b.op {
	case "+", "-", "*", "/", "%":
		if left == Dyn {
			return right
		}
		return left
	}
	return Boolean
}

// results are the kinds of functions, as far as they do not depend on the arguments.
//
//nolint:gochecknoglobals // an immutable table
var results = map[string]Kind{
	"size": Integer, "int": Integer, "indexOf": Integer, "lastIndexOf": Integer, "compareTo": Integer,
	"double": Double, "asApproximateFloat": Double,
	"string": Text, "upperAscii": Text, "lowerAscii": Text, "trim": Text, "replace": Text, "substring": Text,
	"join": Text, "base64.encode": Text, "json.marshal": Text, "regex.replace": Text, "charAt": Text, "strings.quote": Text,
	"hash.md5": Text, "hash.sha1": Text, "hash.sha256": Text, "time.toCron": Text, "jsonpatch.escapeKey": Text,
	"has": Boolean, "hasValue": Boolean, "contains": Boolean, "startsWith": Boolean, "endsWith": Boolean, "matches": Boolean,
	"exists": Boolean, "all": Boolean, "exists_one": Boolean, "isQuantity": Boolean, "isSemver": Boolean,
	"isGreaterThan": Boolean, "isLessThan": Boolean,
	"map": ListKind, "filter": ListKind, "flatten": ListKind, "sort": ListKind, "sortBy": ListKind, "split": ListKind,
	"distinct": ListKind, "transformList": ListKind, "lists.range": ListKind,
	"transformMap": MapKind, "transformMapEntry": MapKind,
	"optional.of": OptionalKind, "optional.none": OptionalKind, "optMap": OptionalKind, "optFlatMap": OptionalKind,
	"first": OptionalKind, "last": OptionalKind, "or": OptionalKind,
	"quantity": OtherKind, "duration": OtherKind, "timestamp": OtherKind, "semver": OtherKind,
}

func (c call) kind() Kind {
	switch c.name {
	case "reverse", "slice":
		return KindOf(c.of)
	case "orValue":
		if _, isField := c.of.(sel); isField {
			return Dyn // a field is, and the checker joins the two to that
		}
		return KindOf(c.args[0])
	}
	return results[c.name]
}

// IsOptional reports whether an expression is an optional.
func IsOptional(e Expr) bool { return KindOf(e) == OptionalKind }

// Null is null.
func Null() Expr { return literal{text: "null", kind: NullKind} }

// Bool is a constant.
func Bool(value bool) Expr { return literal{text: strconv.FormatBool(value), kind: Boolean} }

// BoolOf returns the value of a constant condition; that of nil is true.
func BoolOf(e Expr) (value, ok bool) {
	if e == nil {
		return true, true
	}
	l, ok := e.(literal)
	return l.text == "true", ok && l.kind == Boolean
}

// Int is a whole number.
func Int(value int64) Expr { return literal{text: strconv.FormatInt(value, 10), kind: Integer} }

// Float is a number with a fraction.
func Float(value float64) Expr {
	text := strconv.FormatFloat(value, 'g', -1, 64)
	if !strings.ContainsAny(text, ".e") && !math.IsInf(value, 0) {
		text += ".0"
	}
	return literal{text: text, kind: Double}
}

// String is a text.
func String(text string) Expr { return literal{text: quote(text), kind: Text} }

// StringOf returns the text of a constant.
func StringOf(e Expr) (string, bool) {
	l, ok := e.(literal)
	if !ok || l.kind != Text {
		return "", false
	}
	text, err := strconv.Unquote(l.text)
	return text, err == nil
}

func quote(text string) string { return strconv.Quote(strings.ToValidUTF8(text, "\uFFFD")) }

// Value is a JSON value, as a literal. It panics where value is none.
func Value(value any) Expr {
	switch v := value.(type) {
	case nil:
		return Null()
	case bool:
		return Bool(v)
	case string:
		return String(v)
	case int:
		return Int(int64(v))
	case int64:
		return Int(v)
	case float64:
		return Float(v)
	case []any:
		items := make([]Expr, len(v))
		for i, item := range v {
			items[i] = Value(item)
		}
		return List(items...)
	case map[string]any:
		entries := make([]Entry, 0, len(v))
		for _, key := range sortedKeys(v) {
			entries = append(entries, Entry{Key: String(key), Value: Value(v[key])})
		}
		return Map(entries...)
	}
	panic("not a JSON value")
}
