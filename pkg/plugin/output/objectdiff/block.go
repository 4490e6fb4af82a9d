package objectdiff

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// block writes a text of several lines as it is, line by line, and reports whether
// it could. The library would write a text with a tab, or with a space at the end of a
// line, as one line of escapes: a file in a ConfigMap could not be read there, nor a
// change in it be seen.
func (w *YAMLWriter) block(s string, indent int, self *holder) bool {
	if !asLines(s) {
		return false
	}
	w.b.WriteByte('|')
	if s[0] == ' ' || s[0] == '\t' || s[0] == '\n' {
		w.b.WriteByte('2') // or else the first line would say how far the text is moved
	}
	switch body := strings.TrimRight(s, "\n"); len(s) - len(body) {
	case 0:
		w.b.WriteByte('-')
	case 1:
	default:
		w.b.WriteByte('+')
	}
	// At the outermost level, where it is a key's, a text is moved by two as well.
	margin := max(indent, 2)
	for line := range strings.SplitSeq(strings.TrimSuffix(s, "\n"), "\n") {
		w.b.WriteByte('\n')
		if line == "" {
			w.line(self, 0)
		} else {
			w.line(self, margin)
			text, returned := strings.CutSuffix(line, "\r")
			w.b.WriteString(text)
			if returned {
				w.b.WriteString(carriageReturn)
			}
		}
	}
	w.b.WriteByte('\n')
	return true
}

// carriageReturn is written at the end of a line for a carriage return before the line
// break, as Windows ends lines, so that it is seen, and a change of it.
const carriageReturn = `\r`

// ambiguous reports whether lines of a text end in the escape of a carriage return.
func ambiguous(s string) bool { return strings.Contains(s, carriageReturn+"\n") }

// asLines reports whether a text has several lines and nothing in it that a YAML
// block cannot hold.
func asLines(s string) bool {
	if strings.IndexByte(s, '\n') < 0 || ambiguous(s) {
		return false
	}
	s = strings.ReplaceAll(s, "\r\n", "\n")
	if strings.Trim(s, "\n") == "" || !utf8.ValidString(s) {
		return false
	}
	return !strings.ContainsFunc(s, func(r rune) bool {
		special := unicode.IsControl(r) && r != '\n' && r != '\t'
		return special || unreadable(r) || r == '\u2028' || r == '\u2029'
	})
}
