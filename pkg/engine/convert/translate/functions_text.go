package translate

import (
	"cmp"
	"regexp"
	"regexp/syntax"
	"strings"

	"github.com/blang/semver/v4"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/convert/expr"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/selector"
)

// ask is a boolean string method with a string argument.
func ask(name string) func(*callOf) Value {
	return plainly(Boolean, func(_ *callOf, a ...expr.Expr) expr.Expr { return expr.Method(a[0], name, a[1]) })
}

func equalFold(c *callOf) Value {
	a, b := c.args[0], c.args[1]
	if _, ok := a.Literal(); ok {
		a, b = b, a
	}
	lower := func(e expr.Expr) expr.Expr {
		if text, ok := expr.StringOf(e); ok {
			return expr.String(strings.ToLower(text))
		}
		return expr.Method(e, "lowerAscii")
	}
	return Expression(expr.Equal(lower(a.plain), lower(b.plain)), Boolean)
}

func replace(c *callOf) Value {
	more := []expr.Expr{c.args[1].plain, c.args[2].plain}
	if len(c.args) > 3 {
		if count := c.integer(3, "the number of replacements"); count >= 0 {
			more = append(more, expr.Int(count))
		}
	}
	return Expression(expr.Method(c.args[0].plain, "replace", more...), Text)
}

// trim removes a constant's characters from both ends.
func trim(c *callOf) Value {
	cutset := c.constant(1)
	if cutset == "" {
		return c.args[0]
	}
	class := "[" + strings.NewReplacer(`\`, `\\`, "]", `\]`, "^", `\^`, "-", `\-`, "[", `\[`).Replace(cutset) +
		"]+"
	return Expression(expr.Call("regex.replace", c.args[0].plain, expr.String("^"+class+"|"+class+"$"),
		expr.String("")), Text)
}

func trimPrefix(c *callOf) Value {
	text, prefix := c.args[0].plain, c.args[1].plain
	size := expr.Method(prefix, "size")
	if constant, ok := expr.StringOf(prefix); ok {
		size = expr.Int(int64(len([]rune(constant))))
	}
	return Expression(expr.Cond(expr.Method(text, "startsWith", prefix), expr.Method(text, "substring", size),
		text), Text)
}

func truncate(c *callOf) Value {
	n := c.integer(1, "the length")
	if n < 1 {
		return Constant("")
	}
	text := c.args[0].plain
	return Expression(expr.Cond(expr.Binary(">", expr.Method(text, "size"), expr.Int(n)),
		expr.Method(text, "substring", expr.Int(0), expr.Int(n)), text), Text)
}

func toBoolean(c *callOf) Value {
	lower := expr.Method(c.args[0].plain, "lowerAscii")
	v := Expression(expr.Equal(lower, expr.String("true")), Boolean)
	c.has = allOrNil(c.has, expr.Binary("in", lower, expr.List(expr.String("true"), expr.String("false"))))
	return v
}

// base64Text matches encoded ASCII: string() fails for bytes that are not UTF-8, which would deny the
// request.
const base64Text = `^([A-Za-f][A-HQ-Xg-nw-z0-3][ABEFIJMNQRUVYZcdghklopstwx014589][A-Za-z0-9+/])*` +
	`([A-Za-f][AQgw]==|[A-Za-f][A-HQ-Xg-nw-z0-3][AEIMQUYcgkosw048]=)?$`

func base64Decode(c *callOf) Value {
	c.Note("what is decoded has to be ASCII; the rule changes nothing where it is not")
	c.has = allOrNil(c.has, expr.Method(c.args[0].plain, "matches", expr.String(base64Text)))
	return Expression(expr.Call("string", expr.Call("base64.decode", c.args[0].plain)), Text)
}

func (c *callOf) expression(i int) string {
	text := c.constant(i)
	if _, err := syntax.Parse(text, syntax.Perl); err != nil {
		panic(unsupported(c.name, reasonFails, err.Error()))
	}
	return text
}

func regexMatch(c *callOf) Value {
	return Expression(expr.Method(textOf(c.args[1]), "matches", expr.String(c.expression(0))), Boolean)
}

// textOf formats a scalar as a string.
func textOf(v Value) expr.Expr {
	if v.typ.is(isString) {
		return v.plain
	}
	return stringOf(v)
}

func patternMatch(c *callOf) Value {
	return Expression(Wildcard(textOf(c.args[1]), c.constant(0)), Boolean)
}

// Wildcard is the condition that a string matches a pattern with * and ?.
func Wildcard(text expr.Expr, pattern string) expr.Expr {
	inner := strings.Trim(pattern, "*")
	front, back := strings.HasPrefix(pattern, "*"), strings.HasSuffix(pattern, "*")
	switch {
	case pattern == "" || !selector.HasWildcard(pattern):
		return expr.Equal(text, expr.String(pattern))
	case inner == "":
		return expr.Bool(true)
	case inner == "?" && len(pattern) > 1:
		return expr.NotEqual(text, expr.String(""))
	case selector.HasWildcard(inner):
		return expr.Method(text, "matches", expr.String("^(?s)"+RegularExpression(pattern)+"$"))
	case front && back:
		return expr.Method(text, "contains", expr.String(inner))
	case front:
		return expr.Method(text, "endsWith", expr.String(inner))
	}
	return expr.Method(text, "startsWith", expr.String(inner))
}

// characters replaces a pattern's characters that are special in a regular expression; brackets are the most
// readable escape.
//
//nolint:gochecknoglobals // immutable
var characters = strings.NewReplacer("*", ".*", "?", ".", ".", "[.]", "+", "[+]", "(", "[(]",
	")", "[)]", "[", "[[]", "]", "[]]",
	"{", "[{]", "}", "[}]", "|", "[|]", "$", "[$]", "^", `\^`, `\`, `\\`)

// RegularExpression returns the regular expression of a wildcard pattern.
func RegularExpression(pattern string) string { return characters.Replace(pattern) }

var comparator = regexp.MustCompile(`^(==|=|!=|!|>=|<=|>|<|)([0-9].*)$`)

// semverCompare translates version ranges, such as ">=1.2.0 <2.0.0 || 3.0.0". An invalid version counts as
// 0.0.0.
func semverCompare(c *callOf) Value {
	text := c.constant(1)
	if _, err := semver.ParseRange(text); err != nil {
		panic(unsupported(c.name, reasonFails, err.Error()))
	}
	version := c.args[0].plain
	version = expr.Call("semver", expr.Cond(expr.Call("isSemver", version), version, expr.String("0.0.0")))
	var alternatives []expr.Expr
	for alternative := range strings.SplitSeq(text, "||") {
		var parts []expr.Expr
		for part := range strings.FieldsSeq(alternative) {
			m := comparator.FindStringSubmatch(part)
			if m == nil {
				panic(unsupported(c.name, reasonDynamic, "write no blank behind an operator"))
			}
			if _, err := semver.Parse(m[2]); err != nil {
				panic(unsupported(c.name, "CEL knows no wildcards in versions", "write comparisons"))
			}
			op := cmp.Or(map[string]string{"": "==", "=": "==", "!": "!="}[m[1]], m[1])
			parts = append(parts, ordered(op, version, expr.Call("semver", expr.String(m[2]))))
		}
		alternatives = append(alternatives, expr.And(parts...))
	}
	return Expression(expr.Or(alternatives...), Boolean)
}
