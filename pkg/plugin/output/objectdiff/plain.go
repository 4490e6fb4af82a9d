package objectdiff

import "strings"

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
