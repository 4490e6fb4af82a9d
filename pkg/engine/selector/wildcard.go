package selector

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// MatchWildcard reports whether pattern matches the whole of text: `*` matches any run of
// characters, `/` included, and `?` exactly one character. There is no escape. An empty
// pattern matches empty text only. A pattern that CheckWildcard refuses matches nothing.
func MatchWildcard(pattern, text string) bool {
	if CheckWildcard(pattern) != nil {
		return false
	}
	first, rest, hasStar := strings.Cut(pattern, "*")
	n := fits(first, text)
	if n < 0 || !hasStar {
		return n == len(text)
	}
	for text = text[n:]; ; { // what stands between the stars, each in the first place where it fits
		segment, after, more := strings.Cut(rest, "*")
		if !more {
			start := len(text)
			for range utf8.RuneCountInString(segment) {
				_, size := utf8.DecodeLastRuneInString(text[:start])
				start -= size
			}
			return fits(segment, text[start:]) == len(text)-start
		}
		end := find(segment, text)
		if end < 0 {
			return false
		}
		text, rest = text[end:], after
	}
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

// fits returns how many bytes at the beginning of a text a segment without `*` stands for, or -1.
func fits(segment, text string) int {
	if strings.HasPrefix(text, segment) {
		return len(segment)
	}
	n := 0
	for _, c := range []byte(segment) {
		switch {
		case n == len(text):
			return -1
		case c == '?':
			_, size := utf8.DecodeRuneInString(text[n:])
			n += size
		case c != text[n]:
			return -1
		default:
			n++
		}
	}
	return n
}

// find returns the end of the first place in a text where a segment fits, or -1. A segment with `?` has at most maxSegment
// characters.
func find(segment, text string) int {
	if !strings.Contains(segment, "?") {
		if i := strings.Index(text, segment); i >= 0 {
			return i + len(segment)
		}
		return -1
	}
	for i := 0; i < len(text); {
		if n := fits(segment, text[i:]); n >= 0 {
			return i + n
		}
		_, size := utf8.DecodeRuneInString(text[i:])
		i += size
	}
	return -1
}

// HasWildcard reports whether text contains `*` or `?`.
func HasWildcard(text string) bool { return strings.ContainsAny(text, "*?") }
