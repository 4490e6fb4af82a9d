package translate

import (
	"regexp"
	"regexp/syntax"
	"slices"
	"strconv"
	"strings"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/convert/expr"
)

// regexReplace translates a regular expression replacement. MutatingAdmissionPolicies can only replace a
// string, or the start of one.
func regexReplace(literal bool) func(*callOf) Value {
	return func(c *callOf) Value {
		mutatingPolicy := c.Language() == MutatingPolicy
		text := c.expression(0)
		value, ok := c.args[2].Literal()
		with, isText := value.(string)
		switch {
		case (!ok || !isText) && mutatingPolicy:
			panic(unsupported(c.name, reasonDynamic, "give the replacement as a constant"))
		case !ok || !isText:
			panic(unsupported(c.name, reasonOnlyPolicies, "write a MutatingPolicy"))
		}
		parts := []part{{text: with}}
		if !literal {
			parts = templateParts(regexp.MustCompile(text), with)
		}
		if replaced, ok := replaceText(textOf(c.args[1]), text, parts); ok {
			return Expression(replaced, Text)
		}
		if !mutatingPolicy {
			replaced, ok := replaceStart(c.args[1], text, parts)
			if !ok {
				panic(unsupported(c.name, reasonOnlyPolicies, "write a MutatingPolicy"))
			}
			return Expression(replaced, Text)
		}
		replacement := ""
		for _, p := range parts {
			if p.group > 9 {
				panic(unsupported(c.name, "CEL's replacements know nine groups", "do not keep what needs no group: (?:...)"))
			}
			replacement += strings.ReplaceAll(p.text, `\`, `\\`)
			if p.text == "" {
				replacement += `\` + strconv.Itoa(p.group)
			}
		}
		return Expression(expr.Call("regex.replace", textOf(c.args[1]), expr.String(text),
			expr.String(replacement)), Text)
	}
}

// replaceText replaces an expression that matches only one string.
func replaceText(of expr.Expr, pattern string, with []part) (expr.Expr, bool) {
	tree, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil || tree.Op != syntax.OpLiteral || tree.Flags&syntax.FoldCase != 0 {
		return nil, false
	}
	constant := ""
	for _, p := range with {
		if p.text == "" { // a group
			return nil, false
		}
		constant += p.text
	}
	return expr.Method(of, "replace", expr.String(string(tree.Rune)), expr.String(constant)), true
}

// part is a part of a replacement: a string, or a group if it is empty.
type part struct {
	text  string
	group int
}

var reference = regexp.MustCompile(`\$(\$|[\pL\p{Nd}_]+|\{[\pL\p{Nd}_]+\})`)

// templateParts parses a template of package regexp; an unknown group is empty.
func templateParts(re *regexp.Regexp, template string) []part {
	var parts []part
	text, end := "", 0
	for _, found := range reference.FindAllStringIndex(template, -1) {
		text += template[end:found[0]]
		end = found[1]
		name := strings.Trim(template[found[0]+1:end], "{}")
		if name == "$" {
			text += name
			continue
		}
		number, err := strconv.Atoi(name)
		if err != nil || strconv.Itoa(number) != name {
			number = re.SubexpIndex(name)
		}
		if number < 0 || number > re.NumSubexp() {
			continue
		}
		if text != "" {
			parts = append(parts, part{text: text})
		}
		parts, text = append(parts, part{group: number}), ""
	}
	if text += template[end:]; text != "" {
		parts = append(parts, part{text: text})
	}
	return parts
}

// replaceStart replaces a match at the start of a string with a constant, optionally followed by the last
// group, which has to be the rest of the match. So the constant replaces the start of the string, up to the
// group.
func replaceStart(value Value, pattern string, with []part) (expr.Expr, bool) {
	of := textOf(value)
	tree, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil || sequence(tree)[0].Op != syntax.OpBeginText {
		return nil, false
	}
	constant, start := "", pattern
	for i, p := range with {
		ok := true
		switch {
		case p.text != "":
			constant += p.text
		case i < len(with)-1:
			return nil, false
		default:
			start, ok = beforeGroup(sequence(tree), pattern, p.group, value.typ.Form() >= PlainText)
		}
		if !ok {
			return nil, false
		}
	}
	replaced := of
	if start != "^" {
		replaced = expr.Method(of, "substring", expr.Method(expr.Method(of, "find", expr.String(start)), "size"))
	}
	if constant != "" {
		replaced = expr.Binary("+", expr.String(constant), replaced)
	}
	if start == "^" {
		return replaced, true
	}
	return expr.Cond(expr.Method(of, "matches", expr.String(start)), replaced, of), true
}

// sequence returns the concatenated parts of an expression.
func sequence(re *syntax.Regexp) []*syntax.Regexp {
	if re.Op == syntax.OpConcat {
		return re.Sub
	}
	return []*syntax.Regexp{re}
}

// beforeGroup is the part of an expression before its last group. It returns false unless the group matches
// any rest of a string, of one line or several, so that the part matches the same on its own.
func beforeGroup(all []*syntax.Regexp, pattern string, group int, oneLine bool) (start string, ok bool) {
	n := len(all) - 1
	toEnd := all[n].Op == syntax.OpEndText
	if toEnd {
		n--
	}
	if n < 1 || all[n].Op != syntax.OpCapture || all[n].Cap != group {
		return "", false
	}
	start = pattern[:strings.LastIndex(pattern, "(")]
	parsed, err := syntax.Parse(start, syntax.Perl)
	rest := all[n].Sub[0]
	if err != nil || !slices.EqualFunc(sequence(parsed), all[:n], (*syntax.Regexp).Equal) ||
		rest.Op != syntax.OpStar || rest.Flags&syntax.NonGreedy != 0 {
		return "", false
	}
	one := rest.Sub[0].Op
	return start, one == syntax.OpAnyChar || one == syntax.OpAnyCharNotNL && (oneLine || !toEnd)
}
