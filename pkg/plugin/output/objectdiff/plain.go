package objectdiff

import (
	"cmp"
	"strings"
)

// plain reports whether a text surely means itself without quotes: words, names and
// paths that begin with a letter and are no word of YAML 1.1, and what begins with a digit
// and has a letter that is in no number and no time.
func plain(s string) bool {
	if s == "" || len(s) > maxScalarLength {
		return false
	}
	word := isLetter(s[0])
	if !word && !isDigit(s[0]) {
		return false
	}
	for i := 1; i < len(s); i++ {
		switch c := s[i]; {
		case isLetter(c):
			word = word || !strings.ContainsRune("beotxzBEOTXZ", rune(c))
		case isDigit(c), c == '-', c == '.', c == '/', c == '_', c == '=', c == '@', c == ':' && i < len(s)-1:
		default:
			return false
		}
	}
	if len(s) <= len("false") {
		switch strings.ToLower(s) {
		case "y", "n", "yes", "no", "on", "off", "true", "false", "null":
			return false
		}
	}
	hexadecimal := s[0] == '0' && len(s) > 1 && s[1]|0x20 == 'x'
	return word && !hexadecimal
}

func isLetter(c byte) bool { return (c|0x20) >= 'a' && (c|0x20) <= 'z' }
func isDigit(c byte) bool  { return c >= '0' && c <= '9' }

// shaped reports whether a value is written as it is, or as the library writes it at any place: a list or
// an object, or a text without spaces, at which lines are broken.
func shaped(v any) bool {
	switch v := v.(type) {
	case nil, bool, int64:
		return true
	case string:
		return plain(v) || v != mergeKey && !strings.ContainsFunc(v, func(r rune) bool { return r <= ' ' || r > '~' })
	case map[string]any:
		return v != nil
	case []any:
		return v != nil
	}
	return false
}

func every[T any](all []T, is func(T) bool) bool {
	for _, v := range all {
		if !is(v) {
			return false
		}
	}
	return true
}

// compareKeys orders plain keys as the library does: letters behind all else, and numbers by what they count.
func compareKeys(a, b string) int {
	i := 0
	for i < len(a) && i < len(b) && a[i] == b[i] {
		i++
	}
	if i == len(a) || i == len(b) {
		return cmp.Compare(len(a), len(b))
	}
	letterA, letterB := isLetter(a[i]), isLetter(b[i])
	switch {
	case letterA && letterB:
		return cmp.Compare(a[i], b[i])
	case letterA:
		return 1
	case letterB:
		return -1
	}
	restA, restB := a[i:], b[i:]
	digitsA, digitsB := restA[:digits(restA)], restB[:digits(restB)]
	if (a[i] == '0' || b[i] == '0') && strings.Trim(a[digitsBefore(a, i):i], "0") != "" {
		digitsA, digitsB = "1"+digitsA, "1"+digitsB // a zero within a number counts
	}
	return cmp.Or(cmp.Compare(number(digitsA), number(digitsB)), cmp.Compare(len(digitsA), len(digitsB)), cmp.Compare(a[i], b[i]))
}

// digits counts the digits that a text begins with.
func digits(s string) int { return len(s) - len(strings.TrimLeft(s, "0123456789")) }

// number is what digits count, as far as it fits.
func number(digits string) (n int64) {
	for _, c := range digits {
		n = n*10 + int64(c-'0')
	}
	return n
}

// digitsBefore is where the digits before a place begin.
func digitsBefore(s string, at int) int { return len(strings.TrimRight(s[:at], "0123456789")) }
