package plugin_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

// jsonNode is a value of a JSON text, which keeps the order and the doubles of its members.
type jsonNode struct {
	keys   []string // of an object; quoted
	kids   []*jsonNode
	closes byte   // '}' or ']'; 0 for a scalar
	text   string // of a scalar
}

func parseJSON(text string) *jsonNode {
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	return readNode(d)
}

func readNode(d *json.Decoder) *jsonNode {
	token, err := d.Token()
	if err != nil {
		return &jsonNode{text: "null"}
	}
	delim, isDelim := token.(json.Delim)
	if !isDelim {
		text, _ := json.Marshal(token)
		return &jsonNode{text: string(text)}
	}
	n := &jsonNode{closes: byte(delim) + 2} // as in ASCII
	for d.More() {
		if n.closes == '}' {
			key, _ := d.Token()
			n.keys = append(n.keys, fmt.Sprintf("%q", key))
		}
		n.kids = append(n.kids, readNode(d))
	}
	_, _ = d.Token()
	return n
}

func (n *jsonNode) write(b *bytes.Buffer) {
	if n.closes == 0 {
		b.WriteString(n.text)
		return
	}
	b.WriteByte(n.closes - 2)
	for i, kid := range n.kids {
		if i > 0 {
			b.WriteByte(',')
		}
		if n.closes == '}' {
			b.WriteString(n.keys[i] + ":")
		}
		kid.write(b)
	}
	b.WriteByte(n.closes)
}

func (n *jsonNode) String() string {
	var b bytes.Buffer
	n.write(&b)
	return b.String()
}

// nodes are the values below a value, each once, and where they stand.
func (n *jsonNode) nodes() (out []jsonPlace) {
	for i, kid := range n.kids {
		out = append(append(out, jsonPlace{n, i}), kid.nodes()...)
	}
	return out
}

type jsonPlace struct {
	in *jsonNode
	at int
}

// strangeValues are values that an API server never sends, or not there.
var strangeValues = []string{
	"null", "true", "0", "-1", "1e999", "9223372036854775808", "0.1", `""`, `"a"`, `"v1"`, `"Secret"`, `"*"`, `"../.."`, `"a/b"`, `"\u001b[31m\u202e"`, `"\ud800"`, `"%s%n"`,
	`"2026-01-01T00:00:00Z"`, `"` + strings.Repeat("a", 1<<16) + `"`, "[]", "{}", "[null]", "[[]]", "[{}]", `{"":""}`, `{"a":null}`, strings.Repeat("[", 2000) + strings.Repeat("]", 2000),
	strings.Repeat(`{"a":`, 600) + "1" + strings.Repeat("}", 600), `{"name":"c"}`, `["get","list","patch"]`, `"default"`, `"kyverno.io/v1"`,
}

// strangeKeys are names of fields that mean something to a reader of objects.
var strangeKeys = []string{
	"kind", "Kind", "apiVersion", "metadata", "items", "continue", "name", "namespace", "uid", "resourceVersion", "status", "code", "reason", "spec", "data", "groupVersion", "versions", "resources",
	"verbs", "allowed", "managedFields", "annotations", "generateName", "serverRelativeURL", "$ref", "", "a.b/c", "\u001b",
}

// edited is a JSON text with edits of four bytes each: what, which value (two), and how. The payload
// is one of the values.
func edited(text string, edits, payload []byte) string {
	root := &jsonNode{closes: ']', kids: []*jsonNode{parseJSON(text)}}
	for ; len(edits) >= 4 && len(root.kids) > 0; edits = edits[4:] {
		places := root.nodes()
		p := places[(int(edits[1])<<8|int(edits[2]))%len(places)]
		how := int(edits[3])
		switch edits[0] % 8 {
		case 0:
			p.in.kids[p.at] = &jsonNode{text: strangeValues[how%len(strangeValues)]}
		case 1: // without it
			p.in.kids = append(p.in.kids[:p.at:p.at], p.in.kids[p.at+1:]...)
			if p.in.closes == '}' {
				p.in.keys = append(p.in.keys[:p.at:p.at], p.in.keys[p.at+1:]...)
			}
		case 2: // under another name
			if p.in.closes == '}' {
				p.in.keys[p.at] = fmt.Sprintf("%q", strangeKeys[how%len(strangeKeys)])
			}
		case 3: // often
			for range 1 << (how % 10) {
				p.in.kids = append(p.in.kids, p.in.kids[p.at])
				if p.in.closes == '}' {
					p.in.keys = append(p.in.keys, p.in.keys[p.at])
				}
			}
		case 4: // in a list, or in an object
			wrapped := &jsonNode{closes: ']', kids: []*jsonNode{p.in.kids[p.at]}}
			if how%2 == 0 {
				wrapped.closes, wrapped.keys = '}', []string{fmt.Sprintf("%q", strangeKeys[how%len(strangeKeys)])}
			}
			p.in.kids[p.at] = wrapped
		case 5: // what stands elsewhere
			other := places[how*len(places)/256]
			p.in.kids[p.at] = &jsonNode{text: other.in.kids[other.at].String()}
		case 6:
			p.in.kids[p.at] = &jsonNode{text: string(payload)}
			if !json.Valid(payload) {
				p.in.kids[p.at].text = fmt.Sprintf("%q", payload)
			}
		case 7: // one more member
			if p.in.closes == '}' {
				p.in.keys = append(p.in.keys, fmt.Sprintf("%q", strangeKeys[how%len(strangeKeys)]))
				p.in.kids = append(p.in.kids, &jsonNode{text: strangeValues[(how/2)%len(strangeValues)]})
			}
		}
		if len(root.String()) > 1<<20 {
			break
		}
	}
	if len(root.kids) == 0 {
		return ""
	}
	return root.kids[0].String()
}

func TestEditsOfJSON(t *testing.T) {
	const text = `{"a":1,"b":[{"c":"d"},null]}`
	for want, edits := range map[string][]byte{
		text:                                       nil,
		`null`:                                     {0, 0, 0, 0},
		`{"b":[{"c":"d"},null]}`:                   {1, 0, 1, 0},
		`{"kind":1,"b":[{"c":"d"},null]}`:          {2, 0, 1, 0},
		`{"a":1,"b":[{"c":"d"},null],"a":1}`:       {3, 0, 1, 0},
		`{"a":[1],"b":[{"c":"d"},null]}`:           {4, 0, 1, 1},
		`{"a":"x","b":[{"c":"d"},null]}`:           {6, 0, 1, 0},
		`{"a":1,"b":[{"c":"d"},true]}`:             {0, 0, 5, 1},
		`{"a":1,"b":[{"c":"d","Kind":null},null]}`: {7, 0, 4, 1},
	} {
		if got := edited(text, edits, []byte("x")); got != want {
			t.Errorf("%v: %s, want %s", edits, got, want)
		}
	}
}
