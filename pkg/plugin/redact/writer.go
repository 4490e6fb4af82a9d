package redact

import (
	"io"
	"regexp"
)

// NewWriter returns a writer of text for people, which escapes as EscapeLines does. A message, or a block of lines,
// has to be written with one call. The further lines of an error,
// a warning, a note or what convert says of a policy are indented, so that none of them reads as a message of its own.
func NewWriter(out io.Writer) io.Writer { return writer{out} }

type writer struct{ out io.Writer }

// Write writes the text as it may be shown.
func (w writer) Write(p []byte) (int, error) {
	text := EscapeLines(string(p))
	if message.MatchString(text) {
		text = furtherLine.ReplaceAllString(text, "\n  $1")
	}
	if _, err := io.WriteString(w.out, text); err != nil {
		return 0, err
	}
	return len(p), nil
}

var (
	message     = regexp.MustCompile(`^(error|warning|note|converted|not converted): `)
	furtherLine = regexp.MustCompile(`\n(\S)`)
)
