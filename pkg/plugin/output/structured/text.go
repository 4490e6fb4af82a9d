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
		out, err := objectdiff.MarshalYAML(mapped(v))
		return string(out), err
	}
	var w jsonWriter
	err := w.value(v, "")
	return w.String() + "\n", err
}

// MarshalLine returns a value as one line of JSON.
func MarshalLine(v any) (string, error) {
	out, err := compact(v)
	return string(out) + "\n", err
}

// compact returns JSON in which nothing acts on a terminal.
func compact(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, err
	}
	return redact.EscapeJSON(bytes.TrimSuffix(b.Bytes(), []byte("\n"))), nil
}

// indented is compact with line breaks. All lines but the first begin with a margin.
func indented(v any, margin string) (string, error) {
	text, err := compact(v)
	if err != nil {
		return "", err
	}
	var b bytes.Buffer
	err = json.Indent(&b, text, margin, indent)
	return b.String(), err
}
