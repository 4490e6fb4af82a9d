package selector

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// MatchWildcard reports whether pattern matches the whole of text: `*` matches any run of
// characters, `/` included, and `?` exactly one character. There is no escape. An empty
// pattern matches empty text only. A pattern that CheckWildcard refuses matches nothing. The
// time that it takes grows as the lengths do, whatever the pattern and the text.
func MatchWildcard(pattern, text string) bool {
	if CheckWildcard(pattern) != nil {
		return false
	}
	if len(pattern) > 1 && len(text) > shortProduct/len(pattern) {
		return matchLong(characters(pattern), characters(text))
	}
	return matchShort(pattern, text)
}

// maxSegment is how many characters may stand between two `*` of a pattern with a `?` among
// them: they are compared at each place of a text.
const maxSegment = 256

// CheckWildcard returns an error for a pattern that takes too long to match.
func CheckWildcard(pattern string) error {
	if len(pattern) <= maxSegment || !strings.Contains(pattern, "?") {
		return nil
	}
	segments := strings.Split(pattern, "*")
	for _, s := range segments[1:max(len(segments)-1, 1)] { // the others stand at one place
		if strings.Contains(s, "?") && utf8.RuneCountInString(s) > maxSegment {
			return fmt.Errorf("is no pattern: more than %d characters stand between two *, with a ? among them", maxSegment)
		}
	}
	return nil
}

// shortProduct is the product of the lengths up to which matchShort takes no longer than
// matchLong takes to prepare.
const shortProduct = 1 << 14

// matchShort takes at most len(pattern)*len(text) steps, and no memory.
func matchShort(pattern, text string) bool {
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

// matchLong finds what stands between the stars, each in the first place where it fits.
func matchLong(pattern, text []rune) bool {
	first, rest, hasStar := cut(pattern)
	if !hasStar {
		return len(text) == len(first) && fits(first, text)
	}
	if len(text) < len(first) || !fits(first, text) {
		return false
	}
	text = text[len(first):]
	for {
		segment, after, more := cut(rest)
		if !more {
			return len(text) >= len(segment) && fits(segment, text[len(text)-len(segment):])
		}
		i := find(text, segment)
		if i < 0 {
			return false
		}
		text, rest = text[i+len(segment):], after
	}
}

// cut splits a pattern at its first `*`.
func cut(pattern []rune) (before, after []rune, found bool) {
	if i := slices.Index(pattern, '*'); i >= 0 {
		return pattern[:i], pattern[i+1:], true
	}
	return pattern, nil, false
}

// fits reports whether the text begins with the segment. It is not shorter.
func fits(segment, text []rune) bool {
	for i, c := range segment {
		if c != '?' && c != text[i] {
			return false
		}
	}
	return true
}

// find returns the first place in the text where the segment fits, or -1. A segment with `?` has
// at most maxSegment characters.
func find(text, segment []rune) int {
	if !slices.Contains(segment, '?') {
		return index(runesOf(text), runesOf(segment))
	}
	for i := 0; i+len(segment) <= len(text); i++ {
		if fits(segment, text[i:]) {
			return i
		}
	}
	return -1
}

// Index is strings.Index in a time that grows as the lengths do: that of the library grows
// with their product on some texts.
func Index(text, part string) int {
	if len(part) <= maxSegment || len(text) <= shortProduct/len(part) {
		return strings.Index(text, part)
	}
	return index(bytesOf(text), bytesOf(part))
}

// sequence is a text, by its bytes or by its characters.
type sequence struct {
	len int
	at  func(i int) rune
}

func bytesOf(s string) sequence { return sequence{len(s), func(i int) rune { return rune(s[i]) }} }

func runesOf(s []rune) sequence { return sequence{len(s), func(i int) rune { return s[i] }} }

// index returns the first place in the text where the part stands, or -1. It never goes back
// in the text (Knuth, Morris and Pratt).
func index(text, part sequence) int {
	if part.len > text.len {
		return -1
	}
	borders := make([]int32, part.len+1) // of what has matched, how much may begin a match
	for i, k := 1, 0; i < part.len; i++ {
		for k > 0 && part.at(i) != part.at(k) {
			k = int(borders[k])
		}
		if part.at(i) == part.at(k) {
			k++
		}
		borders[i+1] = int32(k) //nolint:gosec // no text is that long
	}
	matched := 0
	for i := 0; matched < part.len; i++ {
		if text.len-i < part.len-matched {
			return -1
		}
		for matched > 0 && text.at(i) != part.at(matched) {
			matched = int(borders[matched])
		}
		if text.at(i) == part.at(matched) {
			matched++
		}
		if matched == part.len {
			return i + 1 - part.len
		}
	}
	return 0
}

// HasWildcard reports whether text contains `*` or `?`.
func HasWildcard(text string) bool { return strings.ContainsAny(text, "*?") }

// Prefix is what stands before the wildcards of a pattern: all that it matches begins with it.
func Prefix(pattern string) string {
	if i := strings.IndexAny(pattern, "*?"); i >= 0 {
		return pattern[:i]
	}
	return pattern
}

// character returns the character at i and its length; a byte that is not
// UTF-8 is a character of its own.
func character(s string, i int) (string, int) {
	if s[i] < utf8.RuneSelf {
		return s[i : i+1], 1
	}
	_, size := utf8.DecodeRuneInString(s[i:])
	return s[i : i+size], size
}

// characters are those of a text; bytes that are not UTF-8 stand above all others.
func characters(s string) []rune {
	out := make([]rune, 0, utf8.RuneCountInString(s))
	for i, r := range s {
		if r == utf8.RuneError && !strings.HasPrefix(s[i:], string(utf8.RuneError)) {
			r = utf8.MaxRune + 1 + rune(s[i])
		}
		out = append(out, r)
	}
	return out
}

func hasPrefixAt(s string, i int, prefix string) bool {
	return len(s)-i >= len(prefix) && s[i:i+len(prefix)] == prefix
}
