// Package expr builds CEL expressions and prints them for people: simplified, with double quotes, and over
// several lines if necessary.
package expr

import (
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
)

// Kind is the type of an expression as known to CEL's type checker.
type Kind int

// The kinds of expressions.
const (
	Dyn Kind = iota // unknown before evaluation
	Text
	Integer
	Double
	Boolean
	NullKind
	ListKind
	MapKind
	OptionalKind
	OtherKind
	openKind // the checker may choose either type
)

// KindOf returns the known type of an expression.
func KindOf(e Expr) Kind {
	if e.kind != Dyn {
		return e.kind
	}
	switch e.op {
	case chain:
		return Boolean
	case listing:
		return ListKind
	case parentheses:
		return KindOf(e.args[0])
	case object:
		if e.name != "" {
			return OtherKind
		}
		return MapKind
	case selection, indexing:
		if e.optional || IsOptional(e.args[0]) {
			return OptionalKind
		}
	case prefix:
		if e.name == "!" {
			return Boolean
		}
		return KindOf(e.args[0])
	case relation:
		return kindOfRelation(e)
	case choice:
		if then := KindOf(e.args[1]); then == KindOf(e.args[2]) {
			return then
		}
	case calling, method:
		return kindOfCall(e)
	case constant, variable:
	}
	return Dyn
}

func kindOfRelation(e Expr) Kind {
	switch e.name {
	case "+", "-", "*", "/", "%":
		if left := KindOf(e.args[0]); left != Dyn {
			return left
		}
		return KindOf(e.args[1])
	}
	return Boolean
}

// results are the result types of functions that do not depend on the arguments.
//
//nolint:gochecknoglobals // an immutable table
var results = map[string]Kind{
	"size": Integer, "int": Integer, "indexOf": Integer, "lastIndexOf": Integer, "compareTo": Integer,
	"double": Double, "asApproximateFloat": Double, "math.ceil": Double, "math.floor": Double,
	"math.round": Double, "math.isFinite": Boolean,
	"string": Text, "upperAscii": Text, "lowerAscii": Text, "trim": Text, "replace": Text, "substring": Text,
	"join": Text, "base64.encode": Text, "json.marshal": Text, "regex.replace": Text,
	"charAt": Text, "strings.quote": Text,
	"hash.md5": Text, "hash.sha1": Text, "hash.sha256": Text, "time.toCron": Text, "jsonpatch.escapeKey": Text,
	"has": Boolean, "hasValue": Boolean, "contains": Boolean, "startsWith": Boolean,
	"endsWith": Boolean, "matches": Boolean,
	"exists": Boolean, "all": Boolean, "exists_one": Boolean, "isQuantity": Boolean, "isSemver": Boolean,
	"isGreaterThan": Boolean, "isLessThan": Boolean,
	"map": ListKind, "filter": ListKind, "flatten": ListKind, "sort": ListKind, "sortBy": ListKind,
	"split":    ListKind,
	"distinct": ListKind, "transformList": ListKind, "lists.range": ListKind,
	"transformMap": MapKind, "transformMapEntry": MapKind,
	"optional.of": OptionalKind, "optional.none": OptionalKind, "optMap": OptionalKind,
	"optFlatMap": OptionalKind,
	"first":      OptionalKind, "last": OptionalKind, "or": OptionalKind,
	"quantity": OtherKind, "duration": OtherKind, "timestamp": OtherKind, "semver": OtherKind,
}

func kindOfCall(e Expr) Kind {
	switch e.name {
	case "reverse", "slice":
		return KindOf(e.args[0])
	case "orValue":
		if of := e.args[0]; of.op == selection && of.kind == Dyn {
			return Dyn // a field is, and the checker unifies the two
		}
		return KindOf(e.args[1])
	}
	return results[e.name]
}

// IsOptional reports whether an expression is an optional.
func IsOptional(e Expr) bool { return KindOf(e) == OptionalKind }

// Null is null.
func Null() Expr { return &Node{name: "null", kind: NullKind} }

// Bool is a constant.
func Bool(value bool) Expr { return &Node{name: strconv.FormatBool(value), kind: Boolean} }

// BoolOf returns the value of a constant condition; nil is true.
func BoolOf(e Expr) (value, ok bool) {
	if e == nil {
		return true, true
	}
	return e.name == "true", e.op == constant && e.kind == Boolean
}

// Int is an integer constant.
func Int(value int64) Expr { return &Node{name: strconv.FormatInt(value, 10), kind: Integer} }

// Float is a double constant.
func Float(value float64) Expr {
	text := strconv.FormatFloat(value, 'g', -1, 64)
	if !strings.ContainsAny(text, ".e") && !math.IsInf(value, 0) {
		text += ".0"
	}
	return &Node{name: text, kind: Double}
}

// String is a string constant.
func String(text string) Expr {
	return &Node{name: strconv.Quote(strings.ToValidUTF8(text, "\uFFFD")), kind: Text}
}

// StringOf returns the value of a constant string.
func StringOf(e Expr) (string, bool) {
	if e.op != constant || e.kind != Text {
		return "", false
	}
	text, err := strconv.Unquote(e.name)
	return text, err == nil
}

// Value is a JSON value as a literal. It panics on other values.
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
		for _, key := range slices.Sorted(maps.Keys(v)) {
			entries = append(entries, Entry{Key: String(key), Value: Value(v[key])})
		}
		return Map(entries...)
	}
	panic("not a JSON value")
}
