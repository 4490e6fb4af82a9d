package report

import "github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/redact"

// escape makes one line of each text, in which nothing acts on what reads it. All texts of a
// report go through it; what is left to a format is its syntax.
func escape(texts ...*string) {
	for _, s := range texts {
		*s = redact.EscapeLine(*s)
	}
}

// escaped is a text that escape has made one line.
func escaped(text string) string { return redact.EscapeLine(text) }
