package objectdiff

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
)

// spaceLegend is the line below those in which white space was marked. Remarks in a
// unified diff begin with a backslash.
const spaceLegend = "\\ only white space differs: · is a space, → a tab\n"

// markSpaces shows the white space of lines of a hunk that differ in nothing else,
// which would look the same otherwise.
func markSpaces(lines []string) []string {
	out := make([]string, 0, len(lines))
	for len(lines) > 0 {
		removed := leading(lines, '-')
		added := leading(lines[removed:], '+')
		n := removed + added
		if n == 0 {
			out, lines = append(out, lines[0]), lines[1:]
			continue
		}
		out = append(out, markRun(lines[:removed], lines[removed:n])...)
		lines = lines[n:]
	}
	return out
}

// leading counts the lines that begin with a sign.
func leading(lines []string, sign byte) int {
	for i, l := range lines {
		if l == "" || l[0] != sign {
			return i
		}
	}
	return len(lines)
}

// markRun marks what was removed and added at one place.
func markRun(removed, added []string) []string {
	out := slices.Concat(removed, added)
	byWords := map[string]int{} // the place of a line with these words
	for i, l := range removed {
		byWords[words(l)] = i
	}
	marked := false
	for i, l := range added {
		if at, ok := byWords[words(l)]; ok {
			out[at], out[len(removed)+i] = markPair(removed[at], l)
			marked = marked || out[at] != removed[at] || out[len(removed)+i] != l
		}
	}
	if marked {
		out = append(out, spaceLegend)
	}
	return out
}

// words returns a line without its marker, with single spaces.
func words(line string) string { return strings.Join(strings.Fields(line[1:]), " ") }

// markPair marks the white space in which two lines of the same words differ. How far
// they are indented can be seen.
func markPair(a, b string) (markedA, markedB string) {
	ofA, ofB := pieces(a[1:]), pieces(b[1:])
	for i := 0; i < len(ofA); i += 2 {
		indents := i == 0 && len(ofA) > 1 && strings.Trim(ofA[i]+ofB[i], " ") == ""
		if ofA[i] != ofB[i] && !indents {
			ofA[i], ofB[i] = marked(ofA[i]), marked(ofB[i])
		}
	}
	return a[:1] + strings.Join(ofA, ""), b[:1] + strings.Join(ofB, "")
}

// pieces are white space and words by turns, beginning and ending with white space.
func pieces(line string) []string {
	out := []string{""}
	for _, r := range line {
		if unicode.IsSpace(r) != (len(out)%2 == 1) {
			out = append(out, "")
		}
		out[len(out)-1] += string(r)
	}
	if len(out)%2 == 0 {
		out = append(out, "")
	}
	return out
}

// marked is white space as it can be seen.
func marked(space string) string {
	var b strings.Builder
	for _, r := range space {
		switch r {
		case ' ':
			b.WriteRune('·')
		case '\t':
			b.WriteRune('→')
		case '\n':
			b.WriteRune(r)
		default:
			fmt.Fprintf(&b, `\u%04x`, r)
		}
	}
	return b.String()
}
