package selector

import (
	"strings"
	"unicode/utf8"
)

// MatchWildcard reports whether pattern matches the whole of text: `*` matches any run of
// characters, `/` included, and `?` exactly one character. There is no escape. An empty
// pattern matches empty text only. It takes at most len(pattern)*len(text) steps,
// whatever the number of stars.
func MatchWildcard(pattern, text string) bool {
	p, t := 0, 0
	star, mark := -1, 0 // the last `*`, and where the text after its run begins
	for t < len(text) {
		switch next, size := character(text, t); {
		case p < len(pattern) && pattern[p] == '*':
			star, mark = p, t
			p++
		case p < len(pattern) && pattern[p] == '?':
			p, t = p+1, t+size
		case p < len(pattern) && hasPrefixAt(pattern, p, next):
			p, t = p+len(next), t+size
		case star >= 0:
			// Only the last run needs to grow: an earlier one already found the
			// first place where what lies between the two fits.
			_, size := character(text, mark)
			mark += size
			p, t = star+1, mark
		default:
			return false
		}
	}
	for p < len(pattern) && pattern[p] == '*' {
		p++
	}
	return p == len(pattern)
}

// HasWildcard reports whether text contains `*` or `?`.
func HasWildcard(text string) bool { return strings.ContainsAny(text, "*?") }

// character returns the character at i and its length; a byte that is not
// UTF-8 is a character of its own.
func character(s string, i int) (string, int) {
	if s[i] < utf8.RuneSelf {
		return s[i : i+1], 1
	}
	_, size := utf8.DecodeRuneInString(s[i:])
	return s[i : i+size], size
}

func hasPrefixAt(s string, i int, prefix string) bool {
	return len(s)-i >= len(prefix) && s[i:i+len(prefix)] == prefix
}
