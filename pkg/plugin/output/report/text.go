package report

import "github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/redact"

// escape makes one line of each text, in which nothing acts on what reads it. All texts of a
// report go through it; what is left to a format is its syntax.
func escape(texts ...*string) {
	for _, s := range texts {
		*s = redact.EscapeLine(*s)
	}
}

// masked returns a text without values of Secrets, escaped.
func masked(m *redact.Masker, text string) string {
	text = m.Text(text)
	escape(&text)
	return text
}
