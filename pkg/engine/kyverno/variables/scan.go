package variables

import (
	"strings"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/limit"
)

const maxNesting = 32

// Segment is a piece of a string: plain text, or a variable.
type Segment struct {
	Text string
	// Variable is the content of {{ }}, in pieces if it holds other variables; nil for plain text.
	Variable []Segment
}

// Split splits a string as rendering does, ignoring references. Unclosed variables are plain text, as are
// closing braces without opening ones. The error is about variables that nest too deep.
func Split(text string) ([]Segment, error) {
	segments, _, err := segmentsOf(text)
	return segments, err
}

// segmentsOf also returns the rest of the string from the first unclosed variable.
func segmentsOf(text string) (segments []Segment, unclosed string, err error) {
	s := scanner{text: text, lastClose: strings.LastIndex(text, "}}"), unclosed: len(text)}
	segments, _ = s.scan(0)
	return segments, text[s.unclosed:], s.err
}

// scanner splits a string in one pass.
type scanner struct {
	text      string
	at        int
	lastClose int // the index of the last }}
	unclosed  int // the index of the first unclosed variable
	err       error
}

// scan reads to the end of the string, or of the variable at this depth.
func (s *scanner) scan(depth int) (pieces []Segment, closed bool) {
	var text strings.Builder
	braces := 0 // open plain braces, of a JMESPath hash
	for s.at < len(s.text) {
		switch rest := s.text[s.at:]; {
		case strings.HasPrefix(rest, `\{{`):
			if depth > 0 || s.lastClose < s.at {
				text.WriteByte('\\')
			}
			text.WriteString("{{")
			s.at += len(`\{{`)
		case strings.HasPrefix(rest, "{{"):
			for _, piece := range s.variable(depth + 1) {
				if text.WriteString(piece.Text); piece.Variable != nil {
					pieces = append(withText(pieces, &text), piece)
				}
			}
		case depth > 0 && braces == 0 && strings.HasPrefix(rest, "}}"):
			s.at += len("}}")
			if len(pieces) == 0 {
				return []Segment{{Text: trimmed(text.String())}}, true
			}
			return withText(pieces, &text), true
		default:
			if rest[0] == '{' {
				braces++
			} else if rest[0] == '}' && braces > 0 {
				braces--
			}
			text.WriteByte(rest[0])
			s.at++
		}
	}
	return withText(pieces, &text), false
}

// variable reads a variable; an unclosed one is the plain text {{ with the rest.
func (s *scanner) variable(depth int) []Segment {
	start := s.at
	s.at += len("{{")
	var pieces []Segment
	switch {
	case start > s.lastClose:
	case depth > maxNesting:
		s.err = &limit.Error{What: "nested variables", Max: maxNesting}
	default:
		var closed bool
		if pieces, closed = s.scan(depth); closed {
			return []Segment{{Variable: pieces}}
		}
	}
	s.unclosed = min(s.unclosed, start)
	return append([]Segment{{Text: "{{"}}, pieces...)
}

func withText(pieces []Segment, text *strings.Builder) []Segment {
	if text.Len() == 0 {
		return pieces
	}
	defer text.Reset()
	return append(pieces, Segment{Text: text.String()})
}

// trimmed drops the blanks around an expression, and the minus of {{-, which stops Kyverno from substituting
// in substituted data: never done here.
func trimmed(raw string) string {
	return strings.TrimSpace(strings.TrimPrefix(strings.TrimSpace(raw), "-"))
}

// Source returns the content of {{ }} as written.
func Source(pieces []Segment) string {
	return join(pieces, func(inner []Segment) string { return "{{" + Source(inner) + "}}" })
}

// withPlaceholders returns an expression with "x" for its variables.
func withPlaceholders(pieces []Segment) string {
	return trimmed(join(pieces, func([]Segment) string { return "x" }))
}

func join(pieces []Segment, variable func([]Segment) string) string {
	var b strings.Builder
	for _, piece := range pieces {
		if b.WriteString(piece.Text); piece.Variable != nil {
			b.WriteString(variable(piece.Variable))
		}
	}
	return b.String()
}
