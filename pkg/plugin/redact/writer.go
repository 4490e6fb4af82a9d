package redact

import "io"

// NewWriter returns a writer of text for people. It masks the values that a masker knows,
// and escapes as EscapeLines does; a nil masker masks nothing. A message, or a block of lines,
// has to be written with one call, so that no value is split.
func NewWriter(out io.Writer, m *Masker) io.Writer { return writer{out, m} }

type writer struct {
	out    io.Writer
	masker *Masker
}

// Write writes the text as it may be shown.
func (w writer) Write(p []byte) (int, error) {
	if _, err := io.WriteString(w.out, EscapeLines(w.masker.Text(string(p)))); err != nil {
		return 0, err
	}
	return len(p), nil
}
