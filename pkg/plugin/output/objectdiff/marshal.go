package objectdiff

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	yaml "sigs.k8s.io/yaml/goyaml.v2"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/redact"
)

// Manifests returns objects as documents of MarshalYAML.
func Manifests(objects []*unstructured.Unstructured) (string, error) {
	var b strings.Builder
	for i, u := range objects {
		if i > 0 {
			b.WriteString("---\n")
		}
		text, err := MarshalYAML(u.Object)
		if err != nil {
			return "", err
		}
		b.Write(text)
	}
	return b.String(), nil
}

// MarshalYAML returns a value as YAML as the library writes it, except that characters
// that a terminal acts on, or that mislead a reader, are escapes in quotes.
func MarshalYAML(v any) ([]byte, error) {
	// The library has escapes, but not for these characters. So each goes through it as
	// its code between marks, which are control characters: for these it has.
	//
	// Its own way by JSON is not taken: it reads that as YAML, and refuses keys of more than 1,024 bytes and some
	// control characters, so that one object could end a run.
	var m marker
	ready := m.value(v)
	if m.err != nil {
		return nil, fmt.Errorf("writing YAML: %w", m.err)
	}
	out, err := yaml.Marshal(ready)
	if err != nil || !m.marked {
		return out, err
	}
	return markedCode.ReplaceAllFunc(out, func(m []byte) []byte {
		code, _ := strconv.ParseUint(string(m[len(yamlMark):len(m)-len(yamlMark)]), 16, 32)
		switch {
		case code < 0x7f && code >= ' ': // of a merge key
			return []byte{byte(code)}
		case code <= 0xff:
			return fmt.Appendf(nil, `\x%02x`, code)
		case code <= 0xffff:
			return fmt.Appendf(nil, `\u%04x`, code)
		}
		return fmt.Appendf(nil, `\U%08x`, code)
	}), nil
}

// mark stands around the code of a character, and yamlMark is what YAML writes for it.
const (
	mark     = '\x01'
	yamlMark = `\x01`
)

var markedCode = regexp.MustCompile(`\\x01[0-9a-f]+\\x01`)

// mergeKey is a key that readers of YAML merge into the map that it stands in, unless it has
// quotes. The library writes none.
const mergeKey = "<<"

// marker makes of values what the library writes.
type marker struct {
	marked bool
	err    error // of a value that JSON does not have
}

// value returns a copy of a value as JSON has it, whose misleading characters are their codes between marks. What is not of the
// types of an object goes by JSON; if all did, a report would take 1.4 times as long.
func (m *marker) value(v any) any {
	switch v := v.(type) {
	case nil, bool, int64:
		return v
	case string:
		return m.text(v)
	case json.Number:
		return number(v)
	case []any:
		if v == nil {
			return nil
		}
		out := make([]any, len(v))
		for i := range v {
			out[i] = m.value(v[i])
		}
		return out
	case map[string]any:
		if v == nil {
			return nil
		}
		out := make(map[string]any, len(v))
		for key, value := range v {
			out[m.text(key)] = m.value(value)
		}
		return out
	}
	text, err := json.Marshal(v)
	var decoded any
	if err == nil {
		decoder := json.NewDecoder(bytes.NewReader(text))
		decoder.UseNumber()
		err = decoder.Decode(&decoded)
	}
	m.err = cmp.Or(m.err, err)
	return m.value(decoded)
}

// number returns a number of JSON: infinite where it is too large.
func number(n json.Number) any {
	if i, err := strconv.ParseInt(n.String(), 10, 64); err == nil {
		return i
	}
	if u, err := strconv.ParseUint(n.String(), 10, 64); err == nil {
		return u
	}
	f, _ := n.Float64()
	return f
}

func (m *marker) text(s string) string {
	if s != mergeKey && utf8.ValidString(s) && strings.IndexFunc(s, marks) < 0 {
		return s
	}
	m.marked = true
	var b strings.Builder
	for _, r := range s {
		if marks(r) || s == mergeKey {
			fmt.Fprintf(&b, "%c%x%c", mark, r, mark)
		} else {
			b.WriteRune(r) // U+FFFD where it is none
		}
	}
	return b.String()
}

// marks reports whether YAML holds a character as it is that a reader should not
// see so, or it is no character. The library escapes control characters itself.
func marks(r rune) bool { return r == mark || r >= 0xa0 && r != utf8.RuneError && redact.Harmful(r) }

// unreadable reports whether YAML takes a character for no text, or for a line break.
func unreadable(r rune) bool {
	return r >= 0x7f && r < 0xa0 || r == 0xfeff || r == 0xfffe || r == 0xffff
}
