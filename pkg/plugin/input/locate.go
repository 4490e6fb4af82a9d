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

// maxLocated is how many bytes of text are kept to look for the lines of fields; those of a larger document
// have its own line.
const maxLocated = 1 << 20

// nodes are the documents of the part, of all that were read together, that was asked last for the lines of its
// fields: they take many times the memory of its text.
type nodes struct {
	sync.Mutex
	text      *byte // the first one of the part
	documents map[int]*yamlv3.Node
}

// locator returns what finds the lines of the fields of a part's documents. The text is read again when it is
// asked; nil where that would be too much.
func (p part) locator() func(document int) func(field string) int {
	if len(p.text) > maxLocated {
		return nil
	}
	p.decoded = nil // what was decoded ahead need not be kept
	return func(document int) func(field string) int {
		return func(field string) int {
			p.nodes.Lock()
			defer p.nodes.Unlock()
			c := converter{first: p.line}
			root, known := p.nodes.of(p, &c)[document]
			if !known {
				return document
			}
			return c.fieldLine(root, field)
		}
	}
}

// of returns the documents of a part by their lines. It and what follows are called with the lock held.
func (n *nodes) of(p part, c *converter) map[int]*yamlv3.Node {
	if text := &p.text[0]; n.text != text {
		n.text, n.documents = text, c.documents(p.text)
	}
	return n.documents
}

// documents returns the mappings that may be documents by their lines: the values of a text, and the elements of
// lists.
func (c *converter) documents(text []byte) map[int]*yamlv3.Node {
	out := map[int]*yamlv3.Node{}
	decoder := yamlv3.NewDecoder(io.MultiReader(strings.NewReader("\n"), bytes.NewReader(text)))
	for {
		var document yamlv3.Node
		if err := decoder.Decode(&document); err != nil {
			if !errors.Is(err, io.EOF) { // JSON values one after the other are no YAML
				return nil
			}
			return out
		}
		for _, root := range document.Content {
			out[c.line(root)] = root
			if items := member(root, "items"); items != nil {
				for _, item := range items.Content {
					out[c.line(item)] = item
				}
			}
		}
	}
}

// member returns a value of a mapping; nil if there is none.
func member(n *yamlv3.Node, key string) *yamlv3.Node {
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

// fieldLine returns the line of a field below a node, or of the part of its path that is there.
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

// lineInText returns the line of a field of the YAML that a text holds, or of the mistake in it.
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

// step goes one step of a path: it returns where the step leads, the value that is there, and the rest of the path.
// Keys may hold dots.
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
