package objectdiff

import (
	"bytes"
	"encoding/json"
	"fmt"

	"sigs.k8s.io/yaml"
)

// MarshalYAML writes a value as YAML as the library does, and can write every text
// that JSON can: the library refuses to read some control characters back from the
// JSON that it goes through, so that one object could end a run.
func MarshalYAML(v any) ([]byte, error) {
	text, err := json.Marshal(v)
	if err != nil {
		return nil, fmt.Errorf("writing YAML: %w", err)
	}
	out, err := yaml.JSONToYAML(escaped(text))
	if err != nil {
		return nil, fmt.Errorf("writing YAML: %w", err)
	}
	return out, nil
}

// escaped writes the characters that YAML takes for no text, or for line breaks,
// as the escapes that mean the same in JSON. They occur in strings only.
func escaped(text []byte) []byte {
	if bytes.IndexFunc(text, unreadable) < 0 {
		return text
	}
	var b bytes.Buffer
	for _, r := range string(text) {
		if unreadable(r) {
			fmt.Fprintf(&b, `\u%04x`, r)
		} else {
			b.WriteRune(r)
		}
	}
	return b.Bytes()
}

func unreadable(r rune) bool {
	return r >= 0x7f && r < 0xa0 || r == 0xfeff || r == 0xfffe || r == 0xffff
}
