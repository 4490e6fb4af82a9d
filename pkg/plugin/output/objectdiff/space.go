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

// markSpaces shows the white space of lines that stand for others and differ from them in nothing else, which would
// look the same otherwise.
func markSpaces(removed, added []string) (markedRemoved, markedAdded []string, legend string) {
	byWords := map[string]int{} // the place of a line with these words
	for i, l := range removed {
		byWords[words(l)] = i
	}
	markedRemoved, markedAdded = slices.Clone(removed), slices.Clone(added)
	for i, l := range added {
		if at, ok := byWords[words(l)]; ok {
			a, b := markPair(removed[at], l)
			markedRemoved[at], markedAdded[i] = a, b
			if a != removed[at] || b != l {
				legend = spaceLegend
			}
		}
	}
	return markedRemoved, markedAdded, legend
}

// words returns a line with single spaces.
func words(line string) string { return strings.Join(strings.Fields(line), " ") }

// markPair marks the white space in which two lines of the same words differ. How far
// they are indented can be seen.
func markPair(a, b string) (markedA, markedB string) {
	ofA, ofB := pieces(a), pieces(b)
	for i := 0; i < len(ofA); i += 2 {
		indents := i == 0 && len(ofA) > 1 && strings.Trim(ofA[i]+ofB[i], " ") == ""
		if ofA[i] != ofB[i] && !indents {
			ofA[i], ofB[i] = marked(ofA[i]), marked(ofB[i])
		}
	}
	return strings.Join(ofA, ""), strings.Join(ofB, "")
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
