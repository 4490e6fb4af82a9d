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
	sides := map[byte]*Document{'-': before, '+': after}
	lines := slices.Collect(strings.Lines(text))
	for i, line := range lines {
		if first, ok := parseHead(line); ok {
			if place := firstPlace(sides, lines[i+1:], first); place != "" {
				lines[i] = strings.TrimSuffix(line, "\n") + " " + place + "\n"
			}
		}
	}
	return strings.Join(markSpaces(lines), ""), nil
}

var head = regexp.MustCompile(`^@@ -(\d+)(?:,\d+)? \+(\d+)(?:,\d+)? @@`)

// parseHead reads the head of a hunk: the number of its first line on either side.
func parseHead(line string) (first map[byte]int, ok bool) {
	match := head.FindStringSubmatch(line)
	if match == nil {
		return nil, false
	}
	before, errBefore := strconv.Atoi(match[1])
	after, errAfter := strconv.Atoi(match[2])
	return map[byte]int{'-': before, '+': after}, errBefore == nil && errAfter == nil
}

// firstPlace is the place of the first line of a hunk that differs.
func firstPlace(sides map[byte]*Document, hunk []string, first map[byte]int) string {
	for i, line := range hunk {
		if line == "" || line[0] == ' ' {
			continue
		}
		return redact.EscapeLine(sides[line[0]].Place(first[line[0]] - 1 + i))
	}
	return ""
}
