package gatekeeper

import (
	"fmt"
	"regexp"
	"strings"
	"unicode/utf8"
)

// tokenKind is the type of a token, as in Gatekeeper's errors.
type tokenKind string

const (
	tokenEOF       tokenKind = "EOF"
	tokenError     tokenKind = "ERROR"
	tokenIdent     tokenKind = "IDENT"
	tokenInt       tokenKind = "INT"
	tokenGlob      tokenKind = "GLOB"
	tokenSeparator tokenKind = "SEPARATOR"
	tokenLBracket  tokenKind = "LBRACKET"
	tokenRBracket  tokenKind = "RBRACKET"
	tokenColon     tokenKind = "COLON"
)

// token is a token of a location with its position.
type token struct {
	kind tokenKind
	text string // without quotes and escapes
	at   int    // in bytes
}

// String returns a token as in Gatekeeper's errors.
func (t token) String() string { return fmt.Sprintf("%s: %q", t.kind, t.text) }

type scanner struct {
	text string
	pos  int
}

var (
	wordForm   = regexp.MustCompile(`^[A-Za-z0-9_-]+`)
	numberForm = regexp.MustCompile(`^[0-9]+$`)
	nameForm   = regexp.MustCompile(`^[A-Za-z_-][A-Za-z0-9_-]*$`)
	// quotedForm matches a quoted string, possibly unclosed, in which a backslash escapes a character.
	quotedForm = regexp.MustCompile(`(?s)^(?:"((?:[^"\\]|\\.)*\\?)("?)|'((?:[^'\\]|\\.)*\\?)('?))`)
	backslash  = regexp.MustCompile(`(?s)\\(.?)`)
	// punctuation maps characters to their tokens.
	punctuation = map[string]tokenKind{ //nolint:gochecknoglobals // an immutable table
		".": tokenSeparator, "[": tokenLBracket, "]": tokenRBracket, ":": tokenColon, "*": tokenGlob,
	}
)

// next returns the next token; at the end always tokenEOF.
func (s *scanner) next() token {
	rest := strings.TrimLeft(s.text[s.pos:], " \t\r\n")
	t := token{kind: tokenEOF, at: len(s.text) - len(rest)}
	if rest == "" {
		return t
	}
	t.kind, t.text = tokenError, wordForm.FindString(rest)
	size := len(t.text)
	switch quoted := quotedForm.FindStringSubmatch(rest); {
	case quoted != nil:
		size, t.text = len(quoted[0]), backslash.ReplaceAllString(quoted[1]+quoted[3], "$1")
		if quoted[2]+quoted[4] != "" {
			t.kind = tokenIdent
		}
	case numberForm.MatchString(t.text):
		t.kind = tokenInt
	case nameForm.MatchString(t.text):
		t.kind = tokenIdent
	case size == 0:
		_, size = utf8.DecodeRuneInString(rest)
		if t.text = rest[:size]; punctuation[t.text] != "" {
			t.kind = punctuation[t.text]
		}
	}
	s.pos = t.at + size
	return t
}
