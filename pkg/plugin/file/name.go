package file

import "strings"

// longestName leaves room for what is put before and behind a name: file systems take 255 bytes.
const longestName = 200

// PlainName returns a name for a file that contains a text, such as the name of a context: without what some
// file systems do not allow, and not too long.
func PlainName(s string) string {
	plain := func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '.', r == '_', r == '-':
			return r
		}
		return '-'
	}
	s = strings.Trim(strings.Map(plain, s), ".-")
	if s == "" {
		return "cluster"
	}
	return s[:min(len(s), longestName)]
}
