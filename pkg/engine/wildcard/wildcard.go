// Package wildcard matches text against patterns of `*` and `?`.
package wildcard

import "strings"

// Match tells whether pattern covers the whole of text: `*` stands for any run
// of characters, `/` included, and `?` for exactly one character. There is no
// escape. An empty pattern covers empty text only. The time is bounded by the
// product of the two lengths, whatever the number of stars.
func Match(pattern, text string) bool {
	if !Has(pattern) {
		return pattern == text
	}
	p, t := []rune(pattern), []rune(text)
	i, j := 0, 0
	star, resume := -1, 0 // the last star seen, and where its run may be taken up again
	for j < len(t) {
		switch {
		case i < len(p) && p[i] == '*':
			star, resume = i, j
			i++
		case i < len(p) && (p[i] == '?' || p[i] == t[j]):
			i++
			j++
		case star >= 0:
			resume++
			i, j = star+1, resume
		default:
			return false
		}
	}
	for i < len(p) && p[i] == '*' {
		i++
	}
	return i == len(p)
}

// Has tells whether text is a pattern and not a plain name.
func Has(text string) bool { return strings.ContainsAny(text, "*?") }
