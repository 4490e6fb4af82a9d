package policyreport

import (
	"bytes"
	"regexp"
	"strconv"
	"strings"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/redact"
)

// document is a YAML document of fields that are texts. A library that writes
// any value takes as long for a report as a whole preview.
type document struct{ bytes.Buffer }

// field writes a text behind its name.
func (d *document) field(indent int, name, text string) {
	margin := strings.Repeat(" ", indent)
	d.WriteString(margin + name + ": ")
	switch {
	case strings.ContainsFunc(text, unprintable):
		d.WriteString(strconv.QuoteToASCII(text)) // its escapes are among YAML's
	case strings.TrimSpace(text) != text && strings.Contains(text, "\n"):
		d.WriteString(strconv.QuoteToASCII(text)) // what is a block's own margin, and its end, would be in doubt
	case strings.Contains(text, "\n"):
		d.WriteString("|-")
		for line := range strings.SplitSeq(text, "\n") {
			d.WriteString("\n" + margin + "  " + line)
		}
	case plain.MatchString(text) && !word.MatchString(text):
		d.WriteString(text)
	default:
		d.WriteString("'" + strings.ReplaceAll(text, "'", "''") + "'")
	}
	d.WriteByte('\n')
}

// optional writes a field unless it is empty.
func (d *document) optional(indent int, name, text string) {
	if text != "" {
		d.field(indent, name, text)
	}
}

var (
	// plain texts mean themselves without quotes, unless they are a word of YAML 1.1.
	plain = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_./-]*$`)
	word  = regexp.MustCompile(`^(?i:y|n|yes|no|on|off|true|false|null)$`)
)

// unprintable reports whether YAML holds a character only as an escape, or it could
// mislead a reader.
func unprintable(r rune) bool { return r != '\n' && redact.Harmful(r) }
