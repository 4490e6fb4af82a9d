package input

import (
	"bytes"
	"errors"
	"io"
	"strconv"
	"strings"
	"sync"

	yamlv3 "go.yaml.in/yaml/v3"
)

// maxLocated is the maximum number of bytes that are kept to find the lines of fields; the fields of a
// larger document have its own line.
const maxLocated = 1 << 20

// locator returns a function that finds the lines of fields of a part's documents, by decoding it again; nil
// if the part is too large.
func (p part) locator() func(document int) func(field string) int {
	if len(p.text) > maxLocated {
		return nil
	}
	c := converter{first: p.line}
	documents := sync.OnceValue(func() map[int]*yamlv3.Node { return c.documents(p.text) })
	return func(document int) func(field string) int {
		return func(field string) int {
			if root := documents()[document]; root != nil {
				return c.fieldLine(root, field)
			}
			return document
		}
	}
}

// documents returns the mappings that may be documents, by their lines: the root values and the elements of
// lists.
func (c *converter) documents(text []byte) map[int]*yamlv3.Node {
	out := map[int]*yamlv3.Node{}
	decoder := yamlv3.NewDecoder(io.MultiReader(strings.NewReader("\n"), bytes.NewReader(text)))
	for {
		var document yamlv3.Node
		if err := decoder.Decode(&document); err != nil {
			if !errors.Is(err, io.EOF) { // such as consecutive JSON values
				return nil
			}
			return out
		}
		for _, root := range document.Content {
			out[c.line(root)] = root
			if items := Member(root, "items"); items != nil {
				for _, item := range items.Content {
					out[c.line(item)] = item
				}
			}
		}
	}
}

// Member returns a value of a mapping, or nil.
func Member(n *yamlv3.Node, key string) *yamlv3.Node {
	if n.Kind != yamlv3.MappingNode {
		return nil
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == key {
			return n.Content[i+1]
		}
	}
	return nil
}

// fieldLine returns the line of a field below a node, or of the existing part of its path.
func (c *converter) fieldLine(at *yamlv3.Node, field string) int {
	line := c.line(at)
	for field != "" {
		if at.Kind == yamlv3.AliasNode {
			at = at.Alias
		}
		if at.Style&yamlv3.LiteralStyle != 0 {
			return c.lineInText(at, field)
		}
		found, below, rest := step(at, field)
		if found == nil {
			break
		}
		line, at, field = c.line(found), below, rest
	}
	return line
}

// lineInText returns the line of a field in a string of YAML, or of the syntax error there.
func (c *converter) lineInText(at *yamlv3.Node, field string) int {
	inner := converter{first: c.line(at) + 1}
	var document yamlv3.Node
	err := yamlv3.Unmarshal([]byte("\n"+at.Value), &document)
	var placed *Error
	switch {
	case err != nil && errors.As(syntaxError(part{text: []byte(at.Value), line: inner.first}, err), &placed):
		return placed.Line
	case len(document.Content) > 0:
		return inner.fieldLine(document.Content[0], field)
	}
	return c.line(at)
}

// step follows the first step of a path: it returns the node of that step, its value and the rest of the
// path. Keys may contain dots.
func step(n *yamlv3.Node, field string) (at, below *yamlv3.Node, rest string) {
	switch n.Kind {
	case yamlv3.MappingNode:
		longest := -1
		for i := 0; i+1 < len(n.Content); i += 2 {
			key := n.Content[i].Value
			after, found := strings.CutPrefix(field, key)
			if found && len(key) > longest && (after == "" || after[0] == '.' || after[0] == '[') {
				longest, at, below, rest = len(key), n.Content[i], n.Content[i+1], strings.TrimPrefix(after, ".")
			}
		}
	case yamlv3.SequenceNode:
		index, after, found := strings.Cut(strings.TrimPrefix(field, "["), "]")
		if i, err := strconv.Atoi(index); found && err == nil && i >= 0 && i < len(n.Content) {
			return n.Content[i], n.Content[i], strings.TrimPrefix(after, ".")
		}
	}
	return at, below, rest
}
