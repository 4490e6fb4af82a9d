package document

import (
	"bytes"
	"encoding/json"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/render/harmless"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/render/yamltext"
)

const indent = "    "

// Text is a value as YAML, or as indented JSON; it ends with a line break.
func Text(v any, asYAML bool) (string, error) {
	if asYAML {
		out, err := yamltext.Marshal(v)
		return string(out), err
	}
	return encode(v, indent)
}

// Line is a value as one line of JSON.
func Line(v any) (string, error) { return encode(v, "") }

// encode is JSON that is easy to read and harmless to look at.
func encode(v any, indent string) (string, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", indent)
	if err := e.Encode(v); err != nil {
		return "", err
	}
	return string(harmless.JSON(b.Bytes())), nil
}
