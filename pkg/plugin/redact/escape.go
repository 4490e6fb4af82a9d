package redact

import (
	"bytes"
	"fmt"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Harmful reports whether a character could act on a terminal, or make a line read as
// something that it is not: control characters, and those that change the direction of
// writing or have no width.
func Harmful(r rune) bool {
	switch {
	case r == utf8.RuneError, r == '\u2028', r == '\u2029':
		return true
	}
	return unicode.IsControl(r) || unicode.Is(unicode.Cf, r)
}

// EscapeLine returns a text as one line: what could act on a terminal or a CI runner, or
// mislead a reader, is shown by codes, and so are line breaks.
func EscapeLine(s string) string { return disarm(Escape(s, "")) }

// EscapeLines is EscapeLine for a text whose line breaks and tabs stay.
func EscapeLines(s string) string { return disarm(Escape(s, "\n\t")) }

// workflowCommand is how a command to the runner of GitHub Actions begins, which
// reads all that a step prints: after white space, on a line of its own
// (ActionCommand.TryParseV2 of actions/runner).
var workflowCommand = regexp.MustCompile(`(?m)^([\t\p{Zs}]*):(:[A-Za-z])`)

// olderCommand begins one in the middle of a line as well (ActionCommand.TryParse).
const olderCommand = "##["

// disarm keeps the runner of GitHub Actions from taking a text for a command.
func disarm(s string) string {
	if strings.Contains(s, "::") {
		s = workflowCommand.ReplaceAllString(s, `${1}\x3a$2`)
	}
	return strings.ReplaceAll(s, olderCommand, `#\x23[`)
}

// Escape shows by codes what could act on a terminal or mislead a reader, but for the
// characters to keep. It is for what programs read: unlike EscapeLine and EscapeLines it
// leaves alone what a CI runner would take for a command.
func Escape(s, keep string) string {
	if printable(s, keep) {
		return s
	}
	var b strings.Builder
	for i, r := range s {
		switch {
		case !Harmful(r) || strings.ContainsRune(keep, r):
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

// printable reports whether a text is nothing but printable ASCII and what is kept,
// as nearly all are.
func printable(s, keep string) bool {
	for i := range len(s) {
		if c := s[i]; (c < ' ' || c > '~') && strings.IndexByte(keep, c) < 0 {
			return false
		}
	}
	return true
}

// EscapeJSON replaces, in a JSON document, the characters that JSON allows and a terminal
// may act on by the escapes that mean the same. Outside of its strings JSON has none of
// them but line breaks.
func EscapeJSON(text []byte) []byte {
	suspect := func(r rune) bool { return r >= 0x7f && Harmful(r) && r != utf8.RuneError }
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
