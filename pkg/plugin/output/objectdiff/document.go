package objectdiff

import (
	"regexp"
	"strconv"
	"strings"
)

// Document is an object as YAML, and what holds each of its lines.
type Document struct {
	Text string

	lines []*holder // of each line; nil for the outermost level
}

// holder is a field or a list element that holds lines.
type holder struct {
	parent *holder // nil for the outermost level
	key    string  // of a field; empty for an element
	index  int     // of an element
	item   any     // the element
}

// Place returns the path of what holds a line, which are counted from 0, as
// "spec.containers[web].env": elements that have a name go by it. It is empty for the
// outermost level. What holds the lines of a text is the field of the text.
func (d *Document) Place(line int) string {
	if line < 0 || line >= len(d.lines) {
		return ""
	}
	return strings.TrimPrefix(d.lines[line].path(), ".")
}

func (h *holder) path() string {
	if h == nil {
		return ""
	}
	return h.parent.path() + h.String()
}

var (
	plainName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_-]*$`)
	plainItem = regexp.MustCompile(`^[A-Za-z0-9_./:@-]+$`)
)

// String returns the last part of the holder's path.
func (h *holder) String() string {
	if h.item != nil {
		object, _ := h.item.(map[string]any)
		if name, ok := object["name"].(string); ok && plainItem.MatchString(name) {
			return "[" + name + "]"
		}
		return "[" + strconv.Itoa(h.index) + "]"
	}
	if plainName.MatchString(h.key) {
		return "." + h.key
	}
	return "[" + strconv.Quote(h.key) + "]"
}
