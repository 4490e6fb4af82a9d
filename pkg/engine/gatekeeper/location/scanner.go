package location

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// kind is the sort of a token, by the name that Gatekeeper's errors give it.
type kind string

const (
	tokenEOF       kind = "EOF"
	tokenError     kind = "ERROR"
	tokenIdent     kind = "IDENT"
	tokenInt       kind = "INT"
	tokenGlob      kind = "GLOB"
	tokenSeparator kind = "SEPARATOR"
	tokenLBracket  kind = "LBRACKET"
	tokenRBracket  kind = "RBRACKET"
	tokenColon     kind = "COLON"
)

// token is one word of a location, and where it starts.
type token struct {
	kind kind
	text string // without quotes and escapes
	at   int    // in bytes
}

// String is how Gatekeeper's errors show a token.
func (t token) String() string { return fmt.Sprintf("%s: %q", t.kind, t.text) }

// scanner takes a text apart.
type scanner struct {
	text string
	pos  int
}

// next is the next token; at the end of the text it is tokenEOF for ever.
func (s *scanner) next() token {
	for s.pos < len(s.text) && strings.IndexByte(" \t\r\n", s.text[s.pos]) >= 0 {
		s.pos++
	}
	if s.pos == len(s.text) {
		return token{kind: tokenEOF, at: s.pos}
	}
	start := s.pos
	c := s.text[start]
	if one, ok := punctuation[c]; ok {
		s.pos++
		return token{one, string(c), start}
	}
	switch {
	case c == '"' || c == '\'':
		return s.quoted(c)
	case isWord(c):
		return s.word()
	}
	_, width := utf8.DecodeRuneInString(s.text[start:])
	s.pos += width
	return token{tokenError, s.text[start:s.pos], start}
}

//nolint:gochecknoglobals // an immutable table
var punctuation = map[byte]kind{'.': tokenSeparator, '[': tokenLBracket, ']': tokenRBracket, ':': tokenColon, '*': tokenGlob}

// quoted reads up to the closing quote; a backslash takes the next character as
// it is. A text that is not closed is an error token.
func (s *scanner) quoted(quote byte) token {
	start := s.pos
	var b strings.Builder
	for s.pos++; s.pos < len(s.text); {
		switch c := s.text[s.pos]; c {
		case quote:
			s.pos++
			return token{tokenIdent, b.String(), start}
		case '\\':
			if s.pos++; s.pos == len(s.text) {
				continue
			}
		}
		_, width := utf8.DecodeRuneInString(s.text[s.pos:])
		b.WriteString(s.text[s.pos : s.pos+width])
		s.pos += width
	}
	return token{tokenError, b.String(), start}
}

// word reads a name or a number. What begins with a digit is a number, or else
// an error.
func (s *scanner) word() token {
	start := s.pos
	digits := true
	for ; s.pos < len(s.text) && isWord(s.text[s.pos]); s.pos++ {
		digits = digits && isDigit(s.text[s.pos])
	}
	t := token{tokenIdent, s.text[start:s.pos], start}
	switch {
	case digits:
		t.kind = tokenInt
	case isDigit(t.text[0]):
		t.kind = tokenError
	}
	return t
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

func isWord(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || isDigit(c) || c == '_' || c == '-'
}
