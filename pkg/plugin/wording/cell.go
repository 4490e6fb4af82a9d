package wording

import (
	"cmp"
	"strings"
)

// Cell returns a text for a cell of a table: on one line, and "-" where it is empty.
func Cell(text string) string {
	return cmp.Or(strings.Join(strings.Fields(text), " "), "-")
}
