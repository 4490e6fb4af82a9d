package render

import (
	"bytes"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
)

// The colours, as terminals know them.
const (
	bold   = "\x1b[1m"
	red    = "\x1b[31m"
	green  = "\x1b[32m"
	yellow = "\x1b[33m"
	cyan   = "\x1b[36m"
	reset  = "\x1b[0m"
)

// harmful tells whether a character could act on a terminal, or make a line read
// as something that it is not: control characters, and those that change the
// direction of writing or have no width.
func harmful(r rune) bool {
	switch {
	case r == utf8.RuneError, r == '\u2028', r == '\u2029':
		return true
	}
	return unicode.IsControl(r) || unicode.Is(unicode.Cf, r)
}

// line makes a text one harmless line.
func line(s string) string { return escape(s, "") }

// Harmless shows what could act on a terminal, or mislead its reader, by codes;
// line breaks stay. Names and values come from clusters and policies.
func Harmless(s string) string { return escape(s, "\n\t") }

func escape(s, keep string) string {
	if printable(s, keep) {
		return s
	}
	var b strings.Builder
	for i, r := range s {
		switch {
		case !harmful(r) || strings.ContainsRune(keep, r):
			b.WriteRune(r)
		case r == utf8.RuneError:
			_, size := utf8.DecodeRuneInString(s[i:])
			if size == 1 {
				fmt.Fprintf(&b, `\x%02x`, s[i])
			} else {
				b.WriteRune(r)
			}
		case r == '\n':
			b.WriteString(`\n`)
		case r == '\t':
			b.WriteString(`\t`)
		case r < 0x80:
			fmt.Fprintf(&b, `\x%02x`, r)
		default:
			fmt.Fprintf(&b, `\u%04x`, r)
		}
	}
	return b.String()
}

// printable tells whether a text is nothing but printable ASCII and what is kept,
// as nearly all are.
func printable(s, keep string) bool {
	for i := range len(s) {
		if c := s[i]; (c < ' ' || c > '~') && strings.IndexByte(keep, c) < 0 {
			return false
		}
	}
	return true
}

// harmlessJSON writes the characters that JSON allows and a terminal may act on
// as the escapes that mean the same. Outside of its strings JSON has none of
// them but line breaks.
func harmlessJSON(text []byte) []byte {
	suspect := func(r rune) bool { return r >= 0x7f && harmful(r) && r != utf8.RuneError }
	if bytes.IndexFunc(text, suspect) < 0 {
		return text
	}
	var b bytes.Buffer
	for _, r := range string(text) {
		switch {
		case !suspect(r):
			b.WriteRune(r)
		case r > 0xffff:
			fmt.Fprintf(&b, `\u%04x\u%04x`, 0xd800+(r-0x10000)>>10, 0xdc00+(r-0x10000)&0x3ff)
		default:
			fmt.Fprintf(&b, `\u%04x`, r)
		}
	}
	return b.Bytes()
}

// resourceName is an object's name as `kubectl -o name` prints it:
// "deployment.apps/web", without the namespace.
func resourceName(k engine.ObjectKey) string {
	kind := strings.ToLower(k.Kind)
	if k.Group != "" {
		kind += "." + k.Group
	}
	return line(kind + "/" + k.Name)
}

// plural is "1 object" or "2 objects".
func plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
