package translate

import (
	"fmt"
	"regexp"
	"regexp/syntax"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/convert/expr"
)

// regexReplace translates the replacement of matches. MutatingAdmissionPolicies can replace a text, and the
// start of one.
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
			replaced, ok := replaceStart(textOf(c.args[1]), text, parts)
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
		return Expression(expr.Call("regex.replace", textOf(c.args[1]), expr.String(text), expr.String(replacement)), Text)
	}
}

// replaceText replaces the matches of an expression that matches one text alone.
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

// part is a part of a replacement: a text, or where that is empty a group.
type part struct {
	text  string
	group int
}

var reference = regexp.MustCompile(`\$(\$|[\pL\p{Nd}_]+|\{[\pL\p{Nd}_]+\})`)

// templateParts are the parts of a template of package regexp; a group that there is not is empty.
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

// replaceStart replaces the match of an expression that matches nothing but the start of a text, by a
// constant and, at most, the last group of the expression, which has to be all that follows in the match. So
// what is replaced is the start of the text, up to that group, by the constant.
func replaceStart(of expr.Expr, pattern string, with []part) (expr.Expr, bool) {
	tree, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil || sequence(tree)[0].Op != syntax.OpBeginText {
		return nil, false
	}
	constant, start, condition := "", pattern, pattern
	for i, p := range with {
		ok := true
		switch {
		case p.text != "":
			constant += p.text
		case i < len(with)-1:
			return nil, false
		default:
			start, condition, ok = beforeGroup(sequence(tree), pattern, p.group)
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
	if condition == "^" {
		return replaced, true
	}
	return expr.Cond(expr.Method(of, "matches", expr.String(condition)), replaced, of), true
}

// sequence is what an expression matches one after the other.
func sequence(re *syntax.Regexp) []*syntax.Regexp {
	if re.Op == syntax.OpConcat {
		return re.Sub
	}
	return []*syntax.Regexp{re}
}

// beforeGroup is the part of an expression that is before its last group, and the condition for a match of
// the whole. It returns false unless the match of that part alone is always what it matches in the whole.
func beforeGroup(all []*syntax.Regexp, pattern string, group int) (start, condition string, ok bool) {
	n := len(all) - 1
	toEnd := all[n].Op == syntax.OpEndText
	if toEnd {
		n--
	}
	if n < 1 || all[n].Op != syntax.OpCapture || all[n].Cap != group {
		return "", "", false
	}
	start = pattern[:strings.LastIndex(pattern, "(")]
	parsed, err := syntax.Parse(start, syntax.Perl)
	if err != nil || !slices.EqualFunc(sequence(parsed), all[:n], (*syntax.Regexp).Equal) {
		return "", "", false
	}
	rest := all[n].Sub[0]
	greedy := rest.Op == syntax.OpStar && rest.Flags&syntax.NonGreedy == 0
	if greedy && (rest.Sub[0].Op == syntax.OpAnyChar || rest.Sub[0].Op == syntax.OpAnyCharNotNL && !toEnd) {
		return start, start, true // the group matches whatever follows
	}
	one, longest := matchesAtStart(&syntax.Regexp{Op: syntax.OpConcat, Sub: all[1:n]})
	// The group matches what follows unless that has a line feed, and so for another match of the part only
	// if that is a longer one.
	return start, pattern, one || longest && greedy && rest.Sub[0].Op == syntax.OpAnyCharNotNL
}

// matchesAtStart reports whether an expression without conditions on what is around it has at most one match
// at the start of any text, and whether its preferred match is always the longest. It follows the expression
// as package regexp does, with all that may still match in the order of preference; false also means that
// this was not found out.
func matchesAtStart(re *syntax.Regexp) (one, longest bool) {
	prog, err := syntax.Compile(re.Simplify())
	if err != nil {
		return false, false
	}
	runes, ok := borders(prog)
	if !ok || len(prog.Inst) > 500 {
		return false, false
	}
	one, longest = true, true
	effort := 1 << 16
	queue := [][]uint32{follow(prog, uint32(prog.Start))} // an index
	seen := map[string]bool{}
	for len(queue) > 0 && longest {
		alive := queue[0]
		queue = queue[1:]
		key := fmt.Sprint(alive)
		if seen[key] {
			continue
		}
		seen[key] = true
		if effort -= len(alive) * len(runes); effort < 0 {
			return false, false
		}
		if i := slices.IndexFunc(alive, func(pc uint32) bool { return prog.Inst[pc].Op == syntax.InstMatch }); i >= 0 {
			one, longest = one && len(alive) == 1, i == len(alive)-1
			alive = alive[:i]
		}
		for _, r := range runes {
			var after []uint32
			for _, pc := range alive {
				if i := prog.Inst[pc]; i.MatchRune(r) {
					after = append(after, i.Out)
				}
			}
			queue = append(queue, follow(prog, after...))
		}
	}
	return one && longest, longest
}

// follow returns the instructions that take the next character, or match, in the order of preference.
func follow(prog *syntax.Prog, from ...uint32) []uint32 {
	var alive []uint32
	visited := make([]bool, len(prog.Inst))
	var visit func(pc uint32)
	visit = func(pc uint32) {
		if visited[pc] {
			return
		}
		visited[pc] = true
		switch i := prog.Inst[pc]; i.Op {
		case syntax.InstAlt, syntax.InstAltMatch:
			visit(i.Out)
			visit(i.Arg)
		case syntax.InstCapture, syntax.InstNop:
			visit(i.Out)
		case syntax.InstFail:
		default:
			alive = append(alive, pc)
		}
	}
	for _, pc := range from {
		visit(pc)
	}
	return alive
}

// borders are characters of which one stands for each that the instructions tell apart. It returns false for
// instructions that ask for more than the next character.
func borders(prog *syntax.Prog) ([]rune, bool) {
	runes := []rune{0}
	for _, i := range prog.Inst {
		switch i.Op {
		case syntax.InstEmptyWidth:
			return nil, false
		case syntax.InstRune, syntax.InstRune1:
			if syntax.Flags(i.Arg)&syntax.FoldCase != 0 {
				return nil, false
			}
			fallthrough
		case syntax.InstRuneAny, syntax.InstRuneAnyNotNL:
			for _, r := range i.Rune {
				runes = append(runes, r-1, r, r+1)
			}
		}
	}
	slices.Sort(runes)
	return slices.DeleteFunc(slices.Compact(runes), func(r rune) bool { return !utf8.ValidRune(r) }), true
}
