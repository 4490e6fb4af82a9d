package objectdiff

import (
	"bytes"
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

// Manifests returns objects as documents of MarshalYAML, without values of Secrets. A nil Masker shows everything.
func Manifests(m *redact.Masker, objects []*unstructured.Unstructured) (string, error) {
	var b strings.Builder
	var w YAMLWriter
	for i, u := range objects {
		if i > 0 {
			b.WriteString("---\n")
		}
		text, err := w.Marshal(m.Object(u).Object)
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
	var w YAMLWriter
	return w.Marshal(v)
}

// marshalYAML is MarshalYAML by the library alone.
func marshalYAML(v any) ([]byte, error) {
	text, err := json.Marshal(v)
	if err != nil {
		return nil, fmt.Errorf("writing YAML: %w", err)
	}
	if bytes.IndexFunc(text, misleading) < 0 && !special.Match(text) {
		return fromJSON(text)
	}
	// The library has escapes, but not for these characters. So each goes through it as
	// its code between marks, which are control characters: for these it has.
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	var plain any
	if err := decoder.Decode(&plain); err != nil {
		return nil, fmt.Errorf("writing YAML: %w", err)
	}
	out, err := marshal(markMisleading(plain))
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
	}), err
}

// mark stands around the code of a character, and yamlMark is what YAML writes for it.
const (
	mark     = '\x01'
	yamlMark = `\x01`
)

var (
	markedCode = regexp.MustCompile(`\\x01[0-9a-f]+\\x01`)
	special    = regexp.MustCompile(`\\u202[89]|"\\u003c\\u003c"`) // separators and merge keys, as JSON writes them
)

// mergeKey is a key that readers of YAML merge into the map that it stands in, unless it has
// quotes. The library writes none.
const mergeKey = "<<"

// markMisleading returns a copy of a JSON value whose misleading characters are their
// codes between marks.
func markMisleading(v any) any {
	switch v := v.(type) {
	case string:
		var b strings.Builder
		for _, r := range v {
			if r == mark || misleading(r) || v == mergeKey {
				fmt.Fprintf(&b, "%c%x%c", mark, r, mark)
			} else {
				b.WriteRune(r)
			}
		}
		return b.String()
	case []any:
		out := make([]any, len(v))
		for i := range v {
			out[i] = markMisleading(v[i])
		}
		return out
	case map[string]any:
		out := make(map[string]any, len(v))
		for key, value := range v {
			out[markMisleading(key).(string)] = markMisleading(value)
		}
		return out
	}
	return v
}

// misleading reports whether YAML holds a character as it is that a reader should not
// see so. The library escapes control characters itself.
func misleading(r rune) bool { return r >= 0xa0 && r != utf8.RuneError && redact.Harmful(r) }

// marshal returns a value as YAML as the library writes it, and can write every text
// that JSON can.
func marshal(v any) ([]byte, error) {
	text, err := json.Marshal(v)
	if err != nil {
		return nil, fmt.Errorf("writing YAML: %w", err)
	}
	return fromJSON(text)
}

// fromJSON writes JSON as YAML. The library's own way there is not taken: it reads JSON as YAML,
// and refuses keys of more than 1,024 bytes and some control characters, so that one object could
// end a run.
func fromJSON(text []byte) ([]byte, error) {
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	var v any
	err := decoder.Decode(&v)
	if err == nil {
		text, err = yaml.Marshal(withNumbers(v))
	}
	if err != nil {
		return nil, fmt.Errorf("writing YAML: %w", err)
	}
	return text, nil
}

// withNumbers makes numbers of those of JSON in a value that was just decoded.
func withNumbers(v any) any {
	switch v := v.(type) {
	case json.Number:
		if i, err := strconv.ParseInt(v.String(), 10, 64); err == nil {
			return i
		}
		if u, err := strconv.ParseUint(v.String(), 10, 64); err == nil {
			return u
		}
		f, _ := v.Float64() // infinite where it is too large
		return f
	case []any:
		for i := range v {
			v[i] = withNumbers(v[i])
		}
	case map[string]any:
		for key := range v {
			v[key] = withNumbers(v[key])
		}
	}
	return v
}

// unreadable reports whether YAML takes a character for no text, or for a line break.
func unreadable(r rune) bool {
	return r >= 0x7f && r < 0xa0 || r == 0xfeff || r == 0xfffe || r == 0xffff
}
