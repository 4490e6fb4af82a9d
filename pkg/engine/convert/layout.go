package convert

import (
	"regexp"
	"slices"
	"strings"
)

// width is where a line of an expression is broken, if it can be.
const width = 100

// narrowest is how short lines get where expressions lie deep in others.
const narrowest = 40

// layout breaks an expression over lines, at its operators and in its brackets, where it is longer than a line.
func layout(cel string, room int) string {
	if len(cel) <= room {
		return cel
	}
	room = max(room, narrowest)
	for _, operator := range []string{" ? ", " || ", " && ", " + "} {
		parts := splitTop(cel, operator)
		if len(parts) < 2 {
			continue
		}
		if operator == " ? " {
			return layoutChoice(parts[0], strings.Join(parts[1:], " ? "), room)
		}
		for i := range parts {
			parts[i] = layout(parts[i], room-len(operator))
		}
		return strings.Join(parts, strings.TrimRight(operator, " ")+"\n")
	}
	if emptyAdded.MatchString(cel) && len(cel) <= room+emptyAddedMore {
		return cel
	}
	if calls := chain(cel); strings.HasPrefix(cel, "{") && len(calls) == 2 { // each entry of a literal
		return layout(calls[0], min(room, len(calls[0])-1)) + layoutBrackets(calls[1], room)
	} else if strings.HasPrefix(cel, "(") && len(calls) > 1 && len(calls[0]) > room { // a sum of lists
		return layout(calls[0], room) + layout(strings.Join(calls[1:], ""), room)
	} else if len(calls) > 3 { // as Go code is written
		for i := range calls {
			calls[i] = layoutBrackets(calls[i], room-2)
		}
		return indentRest(strings.Join(calls, "\n"), "  ")
	}
	return layoutBrackets(cel, room)
}

// emptyAdded matches the operation that makes an empty map or list, which says too little for a line for each of its fields.
var emptyAdded = regexp.MustCompile(`^\[JSONPatch\{op: "add", path: [^{}]*, value: (\{\}|\[\])\}\]$`)

// emptyAddedMore is how much longer than others its line may get.
const emptyAddedMore = 40

// chain splits an expression before each method that is called, such as .map(...).
func chain(cel string) []string {
	var out []string
	from := 0
	for _, i := range topLevel(cel) {
		if m := method.FindString(cel[i:]); m != "" && i > from && !strings.HasPrefix(m, ".orValue") {
			out = append(out, cel[from:i])
			from = i
		}
	}
	return append(out, cel[from:])
}

var method = regexp.MustCompile(`^\.[a-zA-Z]+\(`)

// layoutChoice breaks a ? b : c, where rest is b : c.
func layoutChoice(condition, rest string, room int) string {
	yes, no := rest, ""
	depth := 0 // of choices in the first one
	for _, i := range topLevel(rest) {
		switch {
		case strings.HasPrefix(rest[i:], " ? "):
			depth++
		case strings.HasPrefix(rest[i:], " : ") && depth > 0:
			depth--
		case strings.HasPrefix(rest[i:], " : "):
			if no == "" {
				yes, no = rest[:i], rest[i+3:]
			}
		}
	}
	return layout(condition, room) + "\n  ? " + indentRest(layout(yes, room-4), "    ") + "\n  : " + indentRest(layout(no, room-4), "    ")
}

func indentRest(text, by string) string { return strings.ReplaceAll(text, "\n", "\n"+by) }

// layoutBrackets breaks what stands in the last brackets of an expression.
func layoutBrackets(cel string, room int) string {
	open, end := lastBrackets(cel)
	if open < 0 || end-open < 20 {
		return cel
	}
	before, inner, after := cel[:open+1], cel[open+1:end], cel[end:]
	if strings.TrimSpace(inner) == "" {
		return cel
	}
	items := splitTop(inner, ", ")
	if cel[open] == '(' {
		return layoutCall(before, items, after, room)
	}
	for i := range items {
		items[i] = "  " + indentRest(layoutItem(items[i], room-2), "  ")
	}
	return before + "\n" + strings.Join(items, ",\n") + ",\n" + after
}

// layoutItem breaks an entry of a map behind its key.
func layoutItem(item string, room int) string {
	parts := splitTop(item, ": ")
	if len(parts) < 2 || strings.HasSuffix(parts[0], " ") || tokensAtTop(parts[0], " ") {
		return layout(item, room)
	}
	key, value := parts[0], strings.Join(parts[1:], ": ")
	if (key == "path" || key == "from") && len(item) <= width { // which is read as one
		return item
	}
	if tokensAtTop(value, " ? ") && len(item) > room {
		return key + ":\n  " + indentRest(layout(value, room-2), "  ")
	}
	beside := room - len(key) - 2
	if len(value) > beside && strings.HasSuffix(value, "}") { // what is in brackets begins below the key
		beside = room
	}
	written := layout(value, beside)
	if tokensAtTop(value, " ? ", " + ", " && ", " || ") {
		written = indentRest(written, "  ")
	}
	return key + ": " + written
}

// layoutCall keeps the variables of a macro on the line of the call.
func layoutCall(before string, items []string, after string, room int) string {
	n := 0
	for n < len(items)-1 && identifier.MatchString(items[n]) {
		n++
	}
	head := before
	if n > 0 {
		head += strings.Join(items[:n], ", ") + ","
	}
	rest := items[n:]
	if len(rest) == 1 && len(items) == 1 {
		return before + "\n  " + indentRest(layout(rest[0], room-2), "  ") + "\n" + after
	}
	for i := range rest {
		rest[i] = "  " + indentRest(layout(rest[i], room-2), "  ")
	}
	return head + "\n" + strings.Join(rest, ",\n") + "\n" + after
}

// lastBrackets finds the brackets at the end of an expression that hold most of it.
func lastBrackets(cel string) (open, end int) {
	var stack []int
	best, bestEnd := -1, -1
	for i := 0; i < len(cel); i++ {
		switch cel[i] {
		case '"':
			for i++; i < len(cel) && cel[i] != '"'; i++ {
				if cel[i] == '\\' {
					i++
				}
			}
		case '(', '[', '{':
			stack = append(stack, i)
		case ')', ']', '}':
			if len(stack) == 0 {
				return -1, -1
			}
			start := stack[len(stack)-1]
			stack = stack[:len(stack)-1]
			isIndex := cel[start] == '[' && start > 0 && strings.IndexByte(" ([{,!", cel[start-1]) < 0
			if len(stack) == 0 && !isIndex && (best < 0 || i-start > bestEnd-best) {
				best, bestEnd = start, i
			}
		}
	}
	return best, bestEnd
}

// topLevel are the places of a text outside of brackets and texts in it.
func topLevel(text string) []int {
	var out []int
	depth := 0
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '"':
			for i++; i < len(text) && text[i] != '"'; i++ {
				if text[i] == '\\' {
					i++
				}
			}
		case '(', '[', '{':
			depth++
		case ')', ']', '}':
			depth--
		default:
			if depth == 0 {
				out = append(out, i)
			}
		}
	}
	return out
}

// splitTop splits a text at a separator outside of brackets and texts in it.
func splitTop(text, separator string) []string {
	var cuts []int
	for _, i := range topLevel(text) {
		if strings.HasPrefix(text[i:], separator) && (len(cuts) == 0 || i >= cuts[len(cuts)-1]+len(separator)) {
			cuts = append(cuts, i)
		}
	}
	var out []string
	from := 0
	for _, i := range cuts {
		out = append(out, text[from:i])
		from = i + len(separator)
	}
	return slices.Clip(append(out, text[from:]))
}
