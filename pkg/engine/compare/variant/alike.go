package variant

import (
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"
)

// wildcards makes a text of a pattern that matches it.
var wildcards = strings.NewReplacer("*", "x", "?", "x") //nolint:gochecknoglobals // immutable

// texts are what a text of a policy stands for: its alternatives, without negations, with something for wildcards.
func texts(pattern string) []string {
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
