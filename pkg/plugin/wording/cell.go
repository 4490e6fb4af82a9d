package wording

import (
	"cmp"
	"strings"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/redact"
)

// Cell returns a text for a cell of a table: on one line, escaped, and "-" where it is empty.
func Cell(text string) string {
	return cmp.Or(redact.EscapeLine(strings.Join(strings.Fields(text), " ")), "-")
}
