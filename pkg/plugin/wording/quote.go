package wording

import (
	"fmt"
	"strings"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/redact"
)

// plainBytes are those of a word that mean themselves to every shell.
const plainBytes = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_@+:,./-"

// ShellQuote makes a word safe to paste into a POSIX shell. What a terminal cannot show is
// left to printf, so that the shell gets it as it is; line breaks at the end are lost to it.
func ShellQuote(word string) string {
	switch {
	case word != redact.EscapeLine(word):
		return printed(word)
	case word != "" && word[0] != '=' && strings.Trim(word, plainBytes+"%=") == "":
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}

// printed is a word that printf puts together, of bytes in octal.
func printed(word string) string {
	var b strings.Builder
	for i := range len(word) {
		if c := word[i]; strings.IndexByte(plainBytes, c) >= 0 {
			b.WriteByte(c)
		} else {
			fmt.Fprintf(&b, `\%03o`, c)
		}
	}
	return `"$(printf '` + b.String() + `')"`
}
