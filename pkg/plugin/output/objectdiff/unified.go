package objectdiff

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	udiff "github.com/aymanbagabas/go-udiff"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/redact"
)

// UnifiedNames stand above the two texts of a diff.
type UnifiedNames struct{ Before, After string }

// Unified returns the unified diff of two documents with so many lines of context; it is
// empty where they are equal. The head of a hunk names what holds the first line
// that differs, as git names a function:
// "@@ -40,7 +41,7 @@ spec.containers[web].env". Where lines differ in nothing but white
// space, that is marked.
func Unified(names UnifiedNames, before, after *Document, context int) (string, error) {
	text, err := udiff.ToUnified(names.Before, names.After, before.Text, udiff.Lines(before.Text, after.Text), context)
	if err != nil {
		return "", fmt.Errorf("comparing: %w", err)
	}
	if before.Text == "" || after.Text == "" || text == "" {
		return text, nil
	}
	lines := slices.Collect(strings.Lines(text))
	shift := 0 // by how many lines what follows has moved
	for i, line := range lines {
		if h, ok := parseHunk(line, lines[i+1:], shift); ok {
			lines[i] = h.head(before, after)
			shift += h.lines['+'] - h.lines['-']
		}
	}
	return strings.Join(markSpaces(lines), ""), nil
}

var head = regexp.MustCompile(`^@@ -(\d+)`)

// hunk is where a hunk stands.
type hunk struct {
	before, after int          // its first line in the two documents, from 1
	lines         map[byte]int // how many lines begin with a space, a "-" and a "+"
	side          byte         // the first that is no space
	leading       int          // how many lines stand before that one
}

// parseHunk reads a head and counts the lines below it. What the head says of the second document is not used:
// go-udiff 0.4.1 leaves out the lines between two changes of one hunk, and takes no line for one.
func parseHunk(line string, below []string, shift int) (*hunk, bool) {
	match := head.FindStringSubmatch(line)
	if match == nil {
		return nil, false
	}
	first, err := strconv.Atoi(match[1])
	if err != nil {
		return nil, false
	}
	first = max(first, 1)
	h := &hunk{before: first, after: first + shift, lines: map[byte]int{}}
	for i, l := range below {
		if l[0] == '@' {
			break
		}
		if h.side == 0 && l[0] != ' ' {
			h.side, h.leading = l[0], i
		}
		h.lines[l[0]]++
	}
	return h, true
}

// head is the head as GNU diff writes it, with the place of the first line that differs.
func (h *hunk) head(before, after *Document) string {
	document, first := before, h.before
	if h.side == '+' {
		document, first = after, h.after
	}
	text := fmt.Sprintf("@@ -%s +%s @@", span(h.before, h.lines[' ']+h.lines['-']), span(h.after, h.lines[' ']+h.lines['+']))
	if place := redact.EscapeLine(document.Place(first - 1 + h.leading)); place != "" {
		text += " " + place
	}
	return text + "\n"
}

// span writes so many lines from the first: of none, the line before them is named.
func span(first, count int) string {
	switch count {
	case 0:
		return fmt.Sprintf("%d,0", first-1)
	case 1:
		return strconv.Itoa(first)
	}
	return fmt.Sprintf("%d,%d", first, count)
}
