package variant

import (
	"fmt"
	"math"
	"regexp"
	"regexp/syntax"
	"slices"
	"strconv"
	"strings"
	"unicode"
)

// wildcards makes a text of a pattern that matches it.
var wildcards = strings.NewReplacer("*", "x", "?", "x") //nolint:gochecknoglobals // immutable

// texts are what a text of a policy stands for: its alternatives, without negations, with something for wildcards.
func texts(pattern string) []string {
	if text, ok := matching(pattern); ok {
		return []string{text}
	}
	var out []string
	for _, one := range strings.FieldsFunc(pattern, func(r rune) bool { return r == '|' || r == '&' }) {
		if one = wildcards.Replace(strings.TrimPrefix(strings.TrimSpace(one), "!")); one != "" && !strings.ContainsAny(one, "{}") {
			out = append(out, one)
		}
	}
	return out
}

// alike are texts that are almost what a text of a policy stands for: other letters, more before or behind, nothing or more for a
// wildcard, and no separator beside it.
func alike(pattern string) []string {
	if text, ok := matching(pattern); ok {
		pattern = text
	}
	var out []string
	add := func(text string) {
		if text != "" && !slices.Contains(out, text) {
			out = append(out, text)
		}
	}
	for _, one := range strings.FieldsFunc(pattern, func(r rune) bool { return r == '|' || r == '&' }) {
		one = strings.TrimPrefix(strings.TrimSpace(one), "!")
		if one == "" || strings.ContainsAny(one, "{}") || len(one) > maxAlike {
			continue
		}
		plain := wildcards.Replace(one)
		if plain != one {
			add(strings.NewReplacer("*", "10", "?", "10").Replace(one))
			add(strings.NewReplacer("*", "", "?", "").Replace(one))
			add(separated.ReplaceAllString(one, "x"))
		}
		add(otherCase(plain))
		add("x" + plain)
		add(plain + "x")
	}
	return out
}

// maxAlike bounds the texts to which others are alike: longer ones are no names.
const maxAlike = 80

// separated matches a wildcard with the separator beside it.
var separated = regexp.MustCompile(`[-./:_][*?]+|[*?]+[-./:_]`)

// otherCase is a text in small letters; in capital ones where it has only small ones.
func otherCase(text string) string {
	if strings.ContainsFunc(text, unicode.IsUpper) {
		return strings.ToLower(text)
	}
	return strings.ToUpper(text)
}

// amount matches quantities, and durations of one unit.
var amount = regexp.MustCompile(`^([0-9]+)([EPTGMk]i?|m|h|s)?$`)

// expression matches what is probably a regular expression, and no wildcard.
var expression = regexp.MustCompile(`^\^|\$$|\\[dwsS.]|\]?[+*]\)|\][+*{]|\.[+*]`)

// matching returns a short text that a regular expression matches, and whether the text of a policy is one.
func matching(text string) (string, bool) {
	if len(text) > maxAlike || !expression.MatchString(text) {
		return "", false
	}
	re, err := syntax.Parse(text, syntax.Perl)
	if err != nil {
		return "", false
	}
	var b strings.Builder
	write(&b, re)
	return b.String(), b.Len() > 0
}

// write writes a text that an expression matches: the first of alternatives, and once what may be repeated.
func write(b *strings.Builder, re *syntax.Regexp) {
	switch re.Op {
	case syntax.OpLiteral:
		b.WriteString(string(re.Rune))
	case syntax.OpCharClass:
		for i := 0; i+1 < len(re.Rune); i += 2 { // pairs of the first and the last
			if first := max(re.Rune[i], '!'); first <= re.Rune[i+1] {
				b.WriteRune(first)
				return
			}
		}
	case syntax.OpAnyChar, syntax.OpAnyCharNotNL:
		b.WriteByte('x')
	case syntax.OpRepeat:
		for range max(re.Min, 1) {
			if write(b, re.Sub[0]); b.Len() > maxAlike {
				return
			}
		}
	case syntax.OpAlternate:
		write(b, re.Sub[0])
	default:
		for _, sub := range re.Sub {
			if write(b, sub); b.Len() > maxAlike {
				return
			}
		}
	}
}

// version matches a version of several numbers.
var version = regexp.MustCompile(`^v?[0-9]+([.][0-9]+)+$`)

// versions are a version and those near it: with one of its numbers greater, which as a text it may not be, and the least.
func versions(text string) []string {
	if !version.MatchString(text) {
		return nil
	}
	numbers := strings.Split(text, ".")
	out := []string{text}
	for i, number := range numbers {
		greater := slices.Clone(numbers)
		greater[i] = "1" + strings.Repeat("0", len(number))
		out = append(out, strings.Join(greater, "."))
	}
	return append(out, strings.Repeat("0.", len(numbers)-1)+"1")
}

// compared are texts for the amounts that a text of a policy compares with: these, and others near them.
func compared(pattern string) []string {
	var out []string
	for _, one := range strings.FieldsFunc(pattern, func(r rune) bool { return strings.ContainsRune("|&<>=!- ", r) }) {
		if near := amounts(one); near != nil {
			out = append(out, one)
			for _, value := range near {
				out = append(out, fmt.Sprint(value))
			}
		}
		out = append(out, versions(one)...)
	}
	return out
}

// amounts are quantities near one: a little more and less, another number of digits, and the same in another unit.
func amounts(text string) []any {
	m := amount.FindStringSubmatch(text)
	if m == nil {
		return nil
	}
	n, err := strconv.ParseInt(m[1], 10, 32)
	if err != nil || n > math.MaxInt16 {
		return nil
	}
	out := []any{fmt.Sprint(n+1, m[2]), fmt.Sprint(10*n, m[2])}
	if n > 1 {
		out = append(out, fmt.Sprint(n-1, m[2]))
	}
	if smaller, ok := map[string]string{"Gi": "Mi", "Mi": "Ki"}[m[2]]; ok {
		out = append(out, fmt.Sprint(1024*n, smaller)) //nolint:mnd // of the one are one of the other
	}
	return out
}
