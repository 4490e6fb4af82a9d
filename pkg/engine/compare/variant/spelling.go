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

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
)

// wildcards turns a pattern into a matching string.
var wildcards = strings.NewReplacer("*", "x", "?", "x") //nolint:gochecknoglobals // immutable

// alternatives splits a pattern, without negations; for a regular expression it returns a matching string.
func alternatives(pattern string) []string {
	if text, ok := matching(pattern); ok {
		return []string{text}
	}
	var out []string
	// a separator of strings in a policy: once and twice in one
	if len(pattern) == 1 && strings.Contains("-./:_@,", pattern) {
		return []string{strings.Join([]string{"a", "b"}, pattern), strings.Join([]string{"a", "b", "c"}, pattern)}
	}
	for one := range strings.FieldsFuncSeq(pattern, func(r rune) bool { return r == '|' || r == '&' }) {
		if one = strings.TrimPrefix(strings.TrimSpace(one), "!"); one != "" && !strings.ContainsAny(one, "{}") {
			out = append(out, one)
		}
	}
	return out
}

// texts returns the strings that a pattern stands for, with characters for its wildcards.
func texts(pattern string) []string {
	out := alternatives(pattern)
	for i := range out {
		out[i] = wildcards.Replace(out[i])
	}
	return out
}

// maxAlike bounds the length of strings with near misses: longer ones are not names.
const maxAlike = 80

// separated matches a wildcard with the adjacent separator.
var separated = regexp.MustCompile(`[-./:_][*?]+|[*?]+[-./:_]`)

// similarStrings returns near misses of a pattern: other letters, an added prefix or suffix, nothing or more
// for a wildcard, and no separator next to it.
func similarStrings(pattern string) []string {
	var out []string
	for _, one := range alternatives(pattern) {
		if len(one) > maxAlike {
			continue
		}
		plain := wildcards.Replace(one)
		if plain != one {
			out = append(out, strings.NewReplacer("*", "10", "?", "10").Replace(one), strings.NewReplacer("*", "", "?", "").Replace(one), separated.ReplaceAllString(one, "x"))
		}
		other := strings.ToUpper(plain)
		if strings.ContainsFunc(plain, unicode.IsUpper) {
			other = strings.ToLower(plain)
		}
		out = append(out, other, "x"+plain, plain+"x")
	}
	return engine.Distinct(slices.DeleteFunc(out, func(text string) bool { return text == "" }))
}

// expression matches probable regular expressions that are not wildcard patterns.
var expression = regexp.MustCompile(`^\^|\$$|\\[dwsS.]|\]?[+*]\)|\][+*{]|\.[+*]`)

// matching returns a short string that a regular expression matches, and whether the string is a regular
// expression.
func matching(text string) (string, bool) {
	if len(text) > maxAlike || !expression.MatchString(text) {
		return "", false
	}
	re, err := syntax.Parse(text, syntax.Perl)
	if err != nil {
		return "", false
	}
	out := matched(re.Simplify())
	return out, out != "" && len(out) <= maxAlike
}

// matched returns a string that an expression matches: the first of alternatives, and repetitions once.
func matched(re *syntax.Regexp) string {
	switch re.Op {
	case syntax.OpLiteral:
		return string(re.Rune)
	case syntax.OpCharClass:
		for i := 0; i+1 < len(re.Rune); i += 2 { // pairs of the first and last rune
			if first := max(re.Rune[i], '!'); first <= re.Rune[i+1] {
				return string(first)
			}
		}
	case syntax.OpAnyChar, syntax.OpAnyCharNotNL:
		return "x"
	case syntax.OpAlternate:
		return matched(re.Sub[0])
	}
	var b strings.Builder
	for _, sub := range re.Sub {
		b.WriteString(matched(sub))
	}
	return b.String()
}

// amount matches quantities and single-unit durations; version matches dotted versions.
var (
	amount  = regexp.MustCompile(`^([0-9]+)([EPTGMk]i?|m|h|s)?$`)
	version = regexp.MustCompile(`^v?[0-9]+([.][0-9]+)+$`)
)

// compared returns strings near the amounts and versions that a policy compares with.
func compared(pattern string) []string {
	var out []string
	for one := range strings.FieldsFuncSeq(pattern,
		func(r rune) bool { return strings.ContainsRune("|&<>=!- ", r) }) {
		out = append(append(out, amounts(one)...), versions(one)...)
	}
	return out
}

// versions returns a version and its neighbors: with one number greater, which may sort lower as a string,
// and the least.
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

// amounts returns a quantity and its neighbors: slightly more and less, another number of digits, and the
// same in another unit.
func amounts(text string) []string {
	m := amount.FindStringSubmatch(text)
	if m == nil {
		return nil
	}
	n, err := strconv.ParseInt(m[1], 10, 32)
	if err != nil || n > math.MaxInt16 {
		return nil
	}
	out := []string{text, fmt.Sprint(n+1, m[2]), fmt.Sprint(10*n, m[2])}
	if n > 1 {
		out = append(out, fmt.Sprint(n-1, m[2]))
	}
	if smaller, ok := map[string]string{"Gi": "Mi", "Mi": "Ki"}[m[2]]; ok {
		out = append(out, fmt.Sprint(1024*n, smaller)) // of the one are one of the other
	}
	return out
}
