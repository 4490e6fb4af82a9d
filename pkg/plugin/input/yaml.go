package input

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"math"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"

	yamlv3 "go.yaml.in/yaml/v3"
	"sigs.k8s.io/yaml"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/input/blockyaml"
)

// aliasBudget is how many bytes the aliases of one file may expand to; nodeCost is the cost of a node
// besides its string.
const (
	aliasBudget = 4 << 20
	nodeCost    = 16
)

// maxDepth is the maximum nesting of values; objects of a server stay far below.
const maxDepth = 500

var errTooDeep = fmt.Errorf("values are nested more than %d deep", maxDepth)

// duplicateError reports a key that occurs twice in one mapping.
type duplicateError struct{ key string }

func (e *duplicateError) Error() string { return fmt.Sprintf("duplicate key %q", e.key) }

// decodeYAML decodes one YAML document as kubectl does (YAML 1.1 booleans, keys as strings), but node by
// node: this gives every error its line, refuses duplicate keys, and limits the expansion of aliases. The
// elements of a list are decoded one by one if possible, because nodes take many times the memory of values.
func decodeYAML(p part, aliases *int) ([]value, error) {
	before := *aliases
	if v, ok := decodeList(p, aliases); ok {
		return []value{v}, nil
	}
	*aliases = before
	return decodeNodes(p, 0, aliases)
}

// decodeNodes decodes a part whose values are at a depth of the document.
func decodeNodes(p part, depth int, aliases *int) ([]value, error) {
	if v, ok := decodeBlock(p, depth); ok {
		return []value{v}, nil
	}
	return decodeAny(p, depth, aliases)
}

// decodeBlock decodes YAML as programs write it, and reports whether it could.
func decodeBlock(p part, depth int) (value, bool) {
	d, ok := blockyaml.Decode(p.text, blockyaml.Options{Depth: maxDepth - depth, Scalar: plainScalar})
	return value{content: d.Content, line: p.line + d.Line - 1}, ok
}

func plainScalar(text string) (any, bool) {
	v, err := new(converter).scalar(&yamlv3.Node{Kind: yamlv3.ScalarNode, Value: text})
	return v, err == nil
}

// decodeAny decodes any YAML with the library.
func decodeAny(p part, depth int, aliases *int) ([]value, error) {
	// The parser counts lines from 0 and leaves line 0 out of its errors; a blank line in front makes it count
	// from 1.
	decoder := yamlv3.NewDecoder(io.MultiReader(strings.NewReader("\n"), bytes.NewReader(p.text)))
	var values []value
	for {
		var document yamlv3.Node
		err := decoder.Decode(&document)
		if errors.Is(err, io.EOF) {
			return values, nil
		}
		if err != nil {
			return nil, syntaxError(p, err)
		}
		if len(document.Content) == 0 {
			continue
		}
		root := document.Content[0]
		c := converter{first: p.line, secret: mayBeSecret(p.text), aliases: aliases}
		content, err := c.convert(root, depth)
		if err != nil {
			return nil, err
		}
		values = append(values, value{content: content, line: c.line(root), items: c.itemLines(root)})
	}
}

// converter turns the nodes of one document into values.
type converter struct {
	first   int  // line of the file at which the document begins
	secret  bool // the document may be a Secret, which errors must not quote
	aliases *int // bytes that aliases may still expand to
	inAlias int  // number of aliases that lead to the current node
}

func (c *converter) line(n *yamlv3.Node) int { return c.first + max(n.Line-1, 1) - 1 }

func (c *converter) errorf(n *yamlv3.Node, format string, args ...any) error {
	return &Error{Line: c.line(n), Err: fmt.Errorf(format, args...)}
}

// itemLines returns the lines of the elements of "items" in a mapping.
func (c *converter) itemLines(root *yamlv3.Node) (lines []int) {
	if items := Member(root, "items"); items != nil {
		for _, item := range items.Content {
			lines = append(lines, c.line(item))
		}
	}
	return lines
}

func (c *converter) convert(n *yamlv3.Node, depth int) (any, error) {
	if depth > maxDepth {
		return nil, &Error{Line: c.line(n), Err: errTooDeep}
	}
	if c.inAlias > 0 {
		if *c.aliases -= nodeCost + len(n.Value); *c.aliases < 0 {
			return nil, c.errorf(n, "aliases expand to more than %d bytes", aliasBudget)
		}
	}
	switch n.Kind {
	case yamlv3.AliasNode:
		c.inAlias++
		defer func() { c.inAlias-- }()
		return c.convert(n.Alias, depth+1)
	case yamlv3.MappingNode:
		return c.mapping(n, depth)
	case yamlv3.SequenceNode:
		list := make([]any, 0, len(n.Content))
		for _, element := range n.Content {
			v, err := c.convert(element, depth+1)
			if err != nil {
				return nil, err
			}
			list = append(list, v)
		}
		return list, nil
	default:
		return c.scalar(n)
	}
}

func (c *converter) mapping(n *yamlv3.Node, depth int) (any, error) {
	out := make(map[string]any, len(n.Content)/2)
	var merges []*yamlv3.Node
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].ShortTag() == "!!merge" {
			merges = append(merges, n.Content[i+1])
			continue
		}
		key, err := c.key(n.Content[i], depth)
		if err != nil {
			return nil, err
		}
		if _, twice := out[key]; twice {
			return nil, &Error{Line: c.line(n.Content[i]), Err: &duplicateError{key}}
		}
		if out[key], err = c.convert(n.Content[i+1], depth+1); err != nil {
			return nil, err
		}
	}
	for _, from := range merges {
		if err := c.merge(from, out, depth); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// merge adds the mappings that "<<" names to a mapping; existing keys win.
func (c *converter) merge(from *yamlv3.Node, into map[string]any, depth int) error {
	merged, err := c.convert(from, depth+1)
	if err != nil {
		return err
	}
	sources, isList := merged.([]any)
	if !isList {
		sources = []any{merged}
	}
	for _, source := range sources {
		mapping, isMap := source.(map[string]any)
		if !isMap {
			return c.errorf(from, "the value of << is not a mapping")
		}
		for key, v := range mapping {
			if _, present := into[key]; !present {
				into[key] = v
			}
		}
	}
	return nil
}

// key converts a mapping's key to a string, as JSON has only strings.
func (c *converter) key(n *yamlv3.Node, depth int) (string, error) {
	k, err := c.convert(n, depth+1)
	if err != nil {
		return "", err
	}
	switch k := k.(type) {
	case string:
		return k, nil
	case bool:
		return strconv.FormatBool(k), nil
	case int64:
		return strconv.FormatInt(k, 10), nil
	case float64:
		return strconv.FormatFloat(k, 'g', -1, 64), nil
	case map[string]any:
		return "", c.errorf(n, "a mapping cannot be a key: a string that starts with {{ must be quoted")
	default:
		return "", c.errorf(n, "this cannot be a key: only a string can")
	}
}

func (c *converter) scalar(n *yamlv3.Node) (any, error) {
	switch n.ShortTag() {
	case "!!null":
		return nil, nil
	case "!!int":
		if i, err := strconv.ParseInt(n.Value, 10, 64); err == nil && strconv.FormatInt(i, 10) == n.Value {
			return i, nil // most numbers: the library makes a decoder for each
		}
		fallthrough
	case "!!bool", "!!float":
		var v any
		if err := n.Decode(&v); err != nil {
			return nil, c.errorf(n, "%s is not a %s", quoted(strconv.Quote(n.Value), c.secret),
				strings.TrimPrefix(n.ShortTag(), "!!"))
		}
		return c.number(n, v)
	case "!!binary":
		text, err := base64.StdEncoding.DecodeString(strings.Join(strings.Fields(n.Value), ""))
		if err != nil || !utf8.Valid(text) {
			return nil, c.errorf(n, "the !!binary value is not base64 of UTF-8 text")
		}
		return string(text), nil
	}
	const quoted = yamlv3.SingleQuotedStyle | yamlv3.DoubleQuotedStyle | yamlv3.LiteralStyle |
		yamlv3.FoldedStyle | yamlv3.TaggedStyle
	if n.Style&quoted == 0 {
		switch n.Value { // YAML 1.1, which kubectl reads; YAML 1.2 dropped them
		case "y", "Y", "yes", "Yes", "YES", "on", "On", "ON":
			return true, nil
		case "n", "N", "no", "No", "NO", "off", "Off", "OFF":
			return false, nil
		}
	}
	return n.Value, nil
}

// number returns a number of the YAML library as unstructured objects hold it. A float without a fraction
// becomes an integer, as after kubectl's conversion through JSON.
func (c *converter) number(n *yamlv3.Node, v any) (any, error) {
	switch v := v.(type) {
	case int:
		return int64(v), nil
	case uint64:
		return float64(v), nil
	case float64:
		if math.IsInf(v, 0) || math.IsNaN(v) {
			return nil, c.errorf(n, "%s is not a number that JSON knows", quoted(n.Value, c.secret))
		}
		if v == math.Trunc(v) && math.Abs(v) < 1<<63 {
			return int64(v), nil
		}
	}
	return v, nil
}

var errorLine = regexp.MustCompile(`^yaml: (?:line (\d+): )?(.*)$`)

// quotedName matches an anchor in a parser's error, which may be a value that begins with an asterisk.
var quotedName = regexp.MustCompile(`anchor '.*'`)

// syntaxError returns a parser's error with its line in the file. For "did not find expected ..." the parser
// names the line where the block around it begins, but the older parser behind sigs.k8s.io/yaml the line
// where it stopped; it is not used for documents with anchors, whose expansion it does not limit. Both count
// such a line from 0, all others from 1.
func syntaxError(p part, err error) error {
	line, reason := parserError(err)
	if !strings.HasPrefix(reason, "did not find expected") {
		line--
	} else if bytes.IndexByte(p.text, '&') < 0 {
		var ignored any
		if older := yaml.Unmarshal(append([]byte("\n"), p.text...), &ignored); older != nil {
			line, _ = parserError(older)
		}
	}
	reason = quotedName.ReplaceAllStringFunc(reason, func(name string) string {
		return quoted(name, mayBeSecret(p.text))
	})
	if strings.HasPrefix(reason, "mapping values are not allowed") {
		reason += `: text with ": " in it must be quoted, and a key stands as far to the left as those beside it`
	}
	if len(p.text) <= maxLocated && engine.LooksLikeTemplate(string(p.text)) {
		reason += "; " + engine.TemplateHint
	}
	last := 1 + bytes.Count(bytes.TrimRight(p.text, "\r\n"), []byte("\n"))
	return &Error{Line: p.line + min(max(line, 1), last) - 1, Err: errors.New("invalid YAML: " + reason)}
}

func parserError(err error) (line int, reason string) {
	found := errorLine.FindStringSubmatch(strings.TrimPrefix(err.Error(), "error converting YAML to JSON: "))
	if found == nil {
		return 0, err.Error()
	}
	line, _ = strconv.Atoi(found[1]) // may be missing
	return line, found[2]
}
