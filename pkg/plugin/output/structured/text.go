package structured

import (
	"bytes"
	"encoding/json"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/output/objectdiff"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/redact"
)

const indent = "    "

// MarshalText returns a value as YAML, or as indented JSON; it ends with a line break.
func MarshalText(v any, asYAML bool) (string, error) {
	if asYAML {
		out, err := objectdiff.MarshalYAML(v)
		return string(out), err
	}
	return encode(v, "", indent)
}

// MarshalLine returns a value as one line of JSON.
func MarshalLine(v any) (string, error) { return encode(v, "", "") }

// encode returns indented JSON in which nothing acts on a terminal. All lines but the first begin with a margin.
func encode(v any, margin, indent string) (string, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent(margin, indent)
	if err := e.Encode(v); err != nil {
		return "", err
	}
	return string(redact.EscapeJSON(b.Bytes())), nil
}
