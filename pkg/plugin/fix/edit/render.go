package edit

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	yamlv3 "go.yaml.in/yaml/v3"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/input"
)

// style is the style of a part.
type style struct {
	json    bool
	step    int  // indentation of maps
	compact bool // lists are not indented below their key
}

// styleOf returns the style of the first values that show it; kubectl's by default.
func styleOf(p input.Part, roots []*yamlv3.Node) style {
	s := style{json: p.JSON, step: 2, compact: true}
	seenStep, seenDash := false, false
	var look func(n *yamlv3.Node)
	look = func(n *yamlv3.Node) {
		for i, below := range n.Content {
			if n.Kind == yamlv3.MappingNode && i%2 == 1 && below.Line > n.Content[i-1].Line &&
				len(below.Content) > 0 && below.Anchor == "" {
				further := below.Column - n.Content[i-1].Column
				switch {
				case below.Kind == yamlv3.MappingNode && !seenStep && further > 0:
					s.step, seenStep = min(further, 8), true
				case below.Kind == yamlv3.SequenceNode && !seenDash && !isFlow(below):
					s.compact, seenDash = further == 0, true
				}
			}
			look(below)
		}
	}
	for _, root := range roots {
		look(root)
	}
	return s
}

func spaces(n int) string { return strings.Repeat(" ", n) }

// lineBreak returns the line break of the line of an offset, or of the line before.
func (e *editor) lineBreak(at int) string {
	end := e.lineEnd(max(at, 0))
	if end == len(e.text) {
		end = max(e.lineStart(end)-1, 0)
	}
	if end > 0 && e.text[end-1] == '\r' {
		return "\r\n"
	}
	return "\n"
}

// join joins lines, of which all but the first are indented unless they are empty.
func (e *editor) join(lines []string, indent int) string {
	var b strings.Builder
	for i, line := range lines {
		if i > 0 {
			b.WriteString(e.lineBreak(e.part.Offset))
			if line != "" {
				b.WriteString(spaces(indent))
			}
		}
		b.WriteString(line)
	}
	return b.String()
}

// render returns the lines of an entry of a block collection, without indentation.
func (e *editor) render(v any, inList bool, key string) []string {
	value := node(v)
	holder := &yamlv3.Node{Kind: yamlv3.SequenceNode, Content: []*yamlv3.Node{value}}
	if !inList {
		holder = &yamlv3.Node{Kind: yamlv3.MappingNode, Content: []*yamlv3.Node{node(key), value}}
	}
	return strings.Split(e.encode(holder), "\n")
}

func (e *editor) encode(n *yamlv3.Node) string {
	var b bytes.Buffer
	encoder := yamlv3.NewEncoder(&b)
	if encoder.SetIndent(max(e.style.step, 2)); e.style.compact {
		encoder.CompactSeqIndent()
	}
	if err := encoder.Encode(n); err != nil {
		panic(&Error{Line: e.part.Line, Reason: "a value cannot be written: " + err.Error()})
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// node returns the node of a value, with a name as its first field.
func node(v any) *yamlv3.Node {
	n := &yamlv3.Node{}
	switch v := v.(type) {
	case map[string]any:
		n.Kind = yamlv3.MappingNode
		keys := slices.Sorted(maps.Keys(v))
		if i := slices.Index(keys, "name"); i > 0 {
			keys = slices.Insert(slices.Delete(keys, i, i+1), 0, "name")
		}
		for _, key := range keys {
			n.Content = append(n.Content, node(key), node(v[key]))
		}
	case []any:
		n.Kind = yamlv3.SequenceNode
		for _, item := range v {
			n.Content = append(n.Content, node(item))
		}
	default:
		if err := n.Encode(v); err != nil {
			panic(&Error{Reason: "a value cannot be written: " + err.Error()})
		}
	}
	if len(n.Content) == 0 && n.Kind != yamlv3.ScalarNode {
		n.Style = yamlv3.FlowStyle
	}
	return n
}

// renderFlow returns a value in brackets, or a scalar, in the layout of a separator.
func (e *editor) renderFlow(v any, separator string) string {
	if !e.style.json {
		return e.flowText(node(v))
	}
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	if _, indent, lines := strings.Cut(separator, "\n"); lines {
		step := spaces(e.style.step)
		if strings.Contains(indent, "\t") {
			step = "\t"
		}
		encoder.SetIndent(indent, step)
	}
	if err := encoder.Encode(v); err != nil {
		panic(&Error{Line: e.part.Line, Reason: "a value cannot be written: " + err.Error()})
	}
	return strings.ReplaceAll(strings.TrimSuffix(b.String(), "\n"), "\n", e.lineBreak(e.part.Offset))
}

// flowText returns a node as it is written in brackets.
func (e *editor) flowText(n *yamlv3.Node) string {
	text := e.encode(
		&yamlv3.Node{Kind: yamlv3.SequenceNode, Style: yamlv3.FlowStyle, Content: []*yamlv3.Node{n}})
	return strings.TrimSuffix(strings.TrimPrefix(text, "["), "]")
}

// separators returns the separators between the entries of a collection in brackets, and between a key and
// its value.
func (e *editor) separators(n *yamlv3.Node, entries []entry) (separator, colon string) {
	separator, colon = ", ", ": "
	first := entries[0]
	if first.key != nil {
		if between := string(e.text[e.end(first.key):e.content(first.value)]); strings.TrimSpace(between) == ":" {
			colon = between
		}
	}
	open := e.content(n)
	lead := string(e.text[open+1 : first.start])
	switch {
	case len(entries) > 1 && strings.TrimSpace(string(e.text[first.end:entries[1].start])) == ",":
		separator = string(e.text[first.end:entries[1].start])
	case strings.Contains(lead, "\n") && strings.TrimSpace(lead) == "":
		separator = "," + lead
	case e.style.json && colon == ":":
		separator = ","
	}
	return separator, colon
}

// scalar replaces a scalar.
func (e *editor) scalar(n *yamlv3.Node, v any, s slot) {
	text, isString := v.(string)
	switch {
	case e.style.json:
		e.put(n, e.renderFlow(v, ""))
		return
	case isBlockScalar(n):
		if isString && e.blockScalar(n, text) {
			return
		}
		e.replace(n, v, s)
		return
	}
	value := node(v)
	quotes := n.Style & (yamlv3.SingleQuotedStyle | yamlv3.DoubleQuotedStyle)
	switch {
	case isString && quotes != 0 && !strings.Contains(text, "\n"):
		value.Style = quotes
	case isString && strings.Contains(text, "\n"):
		if !s.flow && value.Style&yamlv3.DoubleQuotedStyle == 0 && quotes == 0 {
			e.replace(n, v, s)
			return
		}
		value.Style = yamlv3.DoubleQuotedStyle
	}
	if s.flow {
		e.put(n, e.flowText(value))
		return
	}
	key := &yamlv3.Node{Kind: yamlv3.ScalarNode, Value: "k"}
	e.put(n,
		strings.TrimPrefix(e.encode(&yamlv3.Node{Kind: yamlv3.MappingNode, Content: []*yamlv3.Node{key, value}}),
			"k: "))
}

// put writes a scalar in place of another, after its anchor and tag.
func (e *editor) put(n *yamlv3.Node, text string) {
	start, end := e.content(n), e.end(n)
	if before := e.text[start-1]; before == ':' || before == '-' {
		text = " " + text
	}
	e.splice(start, end, text)
}

// replace writes a value in place of another of a different kind, or of an empty one.
func (e *editor) replace(n *yamlv3.Node, v any, s slot) {
	start, end := e.start(n), e.end(n)
	switch {
	case isFlow(n), n.Kind == yamlv3.SequenceNode, n.Kind == yamlv3.MappingNode:
		if e.comments(start, end) {
			e.refuse(n, "what is to be replaced here has comments, which would be lost")
		}
	}
	if s.flow || e.style.json {
		separator := ""
		if line := e.text[e.lineStart(start):start]; e.style.json {
			if indent := len(line) - len(bytes.TrimLeft(line, " \t")); bytes.Count(e.part.Text, []byte("\n")) > 0 {
				separator = "\n" + string(line[:indent])
			}
		}
		e.put(n, e.renderFlow(v, separator))
		return
	}
	if s.after < 0 {
		e.refuse(n, "it cannot be replaced as a whole")
	}
	if e.comments(s.after, start) {
		e.refuse(n, "there is a comment before what is to be replaced here, which would be lost")
	}
	lines := e.render(v, false, "k")
	lines[0] = strings.TrimPrefix(lines[0], "k:")
	dash := s.after > 0 && e.text[s.after-1] == '-'
	if dash {
		lines = e.render(v, true, "")
		lines[0] = strings.TrimPrefix(lines[0], "-")
	}
	inline := n.Kind == yamlv3.AliasNode || isFlow(n) || n.Kind == yamlv3.ScalarNode && !isBlockScalar(n)
	if inline && len(lines) > 1 && !e.blank(end, e.lineEnd(end)) { // a comment stays on its line
		e.splice(s.after, end, lines[0])
		e.insert(e.nextLine(end), lines[1:], s.indent)
		return
	}
	e.splice(s.after, end, e.join(lines, s.indent))
}

// blockScalar changes the lines of a block scalar that differ, and reports whether it could.
func (e *editor) blockScalar(n *yamlv3.Node, text string) bool {
	b := e.blockLines(n)
	header := string(e.text[b.header:e.lineEnd(b.header)])
	if n.Style&yamlv3.FoldedStyle != 0 || b.indent == 0 || node(text).Style&yamlv3.DoubleQuotedStyle != 0 ||
		text == "" || strings.Trim(text, "\n") == "" {
		return false
	}
	old, now := strings.Split(strings.TrimRight(n.Value, "\n"), "\n"),
		strings.Split(strings.TrimRight(text, "\n"), "\n")
	if strings.Contains(header, "+") ||
		len(text)-len(strings.TrimRight(text, "\n")) != len(n.Value)-len(strings.TrimRight(n.Value, "\n")) {
		return false
	}
	if lead := strings.HasPrefix(strings.TrimLeft(text, "\n"), " "); lead &&
		!strings.ContainsAny(strings.SplitN(header, "#", 2)[0], "123456789") {
		return false
	}
	if len(b.lines)-1 != len(old) {
		return false
	}
	head := 0
	for head < min(len(old), len(now)) && old[head] == now[head] {
		head++
	}
	tail := 0
	for tail < min(len(old), len(now))-head && old[len(old)-1-tail] == now[len(now)-1-tail] {
		tail++
	}
	var out strings.Builder
	for _, line := range now[head : len(now)-tail] {
		if line != "" {
			out.WriteString(spaces(b.indent) + line)
		}
		out.WriteString(e.lineBreak(b.header))
	}
	start, end := b.lines[head], b.lines[len(old)-tail]
	added := out.String()
	if end == len(e.text) && len(e.text) > 0 && e.text[end-1] != '\n' { // the file ends without a line break
		added = strings.TrimSuffix(added, e.lineBreak(b.header))
		if start == end {
			added = e.lineBreak(b.header) + added
		}
	}
	e.splice(start, end, added)
	return true
}
