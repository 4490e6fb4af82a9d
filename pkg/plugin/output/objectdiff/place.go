package objectdiff

import (
	"regexp"
	"strconv"
	"strings"
)

var (
	plainName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_-]*$`)
	plainItem = regexp.MustCompile(`^[A-Za-z0-9_./:@-]+$`)
	// blockStart ends a line whose value is the text on the lines below it.
	blockStart = regexp.MustCompile(`(: |^ *(- )*)\|[0-9]*[-+]?$`)
)

// LinePlace is the path of what holds a line of an object's YAML, as
// "spec.containers[web].env"; elements that have a name go by it. It is empty for
// a line of the outermost level.
//
// It reads upwards, by indentation alone: what stands in a text of several lines
// is deeper than the line that begins it, so that the path up to there is right
// whatever the text holds.
func LinePlace(lines []string, at int) string {
	if at < 0 || at >= len(lines) {
		return ""
	}
	for at > 0 && strings.TrimSpace(lines[at]) == "" { // it belongs to the text above
		at--
	}
	var parts []string // from the inside out
	indent := depth(lines[at])
	if isItem(lines[at]) { // a list stands no deeper than its key
		indent, at = indent+1, firstItem(lines, at)
	}
	for i := at - 1; i >= 0 && indent > 0; i-- {
		line := lines[i]
		if strings.TrimSpace(line) == "" || depth(line) >= indent {
			continue
		}
		if blockStart.MatchString(line) {
			parts = nil // what was found below it is text
		}
		at := depth(line)
		if !isItem(line) {
			parts = append(parts, field(line))
			indent = at
			continue
		}
		if key := line[at+2:]; at+2 < indent && holds(key) {
			parts = append(parts, field(key))
		}
		parts = append(parts, "["+item(lines, i)+"]")
		indent = at + 1
		i = firstItem(lines, i)
	}
	return join(parts)
}

func depth(line string) int { return len(line) - len(strings.TrimLeft(line, " ")) }

func isItem(line string) bool {
	rest := strings.TrimLeft(line, " ")
	return rest == "-" || strings.HasPrefix(rest, "- ")
}

// holds tells whether a line is a key with something below it.
func holds(line string) bool {
	return strings.HasSuffix(line, ":") || blockStart.MatchString(line)
}

// field is the key of a line, as a part of a path.
func field(line string) string {
	name := strings.TrimSpace(line)
	if i := strings.LastIndex(name, ": |"); i > 0 && blockStart.MatchString(line) {
		name = name[:i]
	}
	name = unquote(strings.TrimSuffix(name, ":"))
	if plainName.MatchString(name) {
		return "." + name
	}
	return "[" + strconv.Quote(name) + "]"
}

func unquote(s string) string {
	if text, err := strconv.Unquote(s); err == nil {
		return text
	}
	if len(s) > 1 && s[0] == '\'' && s[len(s)-1] == '\'' {
		return strings.ReplaceAll(s[1:len(s)-1], "''", "'")
	}
	return s
}

// item names a list element: by its name, or else by its index.
func item(lines []string, start int) string {
	at := depth(lines[start])
	if !strings.HasPrefix(lines[start][at:], "- |") {
		if name, ok := nameOf(lines, start); ok {
			return name
		}
	}
	n := 0
	for i := firstItem(lines, start); i < start; i++ {
		if depth(lines[i]) == at && isItem(lines[i]) {
			n++
		}
	}
	return strconv.Itoa(n)
}

// nameOf looks for the name among the fields of an element.
func nameOf(lines []string, start int) (string, bool) {
	fields := depth(lines[start]) + 2
	for i := start; i < len(lines); i++ {
		line := lines[i]
		if i > start && strings.TrimSpace(line) == "" {
			continue
		}
		if i > start && depth(line) < fields {
			break
		}
		if i > start && depth(line) > fields {
			continue
		}
		if name, ok := strings.CutPrefix(line[min(fields, len(line)):], "name: "); ok {
			name = unquote(name)
			return name, plainItem.MatchString(name)
		}
	}
	return "", false
}

// firstItem is the line on which the list of an item begins.
func firstItem(lines []string, start int) int {
	at, first := depth(lines[start]), start
	for i := start - 1; i >= 0; i-- {
		line := lines[i]
		switch {
		case strings.TrimSpace(line) == "" || depth(line) > at:
		case depth(line) == at && isItem(line):
			first = i
		default:
			return first
		}
	}
	return first
}

func join(parts []string) string {
	var b strings.Builder
	for i := len(parts) - 1; i >= 0; i-- {
		b.WriteString(parts[i])
	}
	return strings.TrimPrefix(b.String(), ".")
}
