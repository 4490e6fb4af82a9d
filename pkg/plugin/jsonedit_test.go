package plugin_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
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
