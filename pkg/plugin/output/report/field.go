package report

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/output/structured"
)

// Field is a field that differs. Its texts are masked and escaped.
type Field struct {
	Path string            `json:"path"`
	Kind engine.ChangeKind `json:"kind"`
	// From and To are the values as JSON, cut where they are long; of a moved
	// element they are its places. From is empty for an added field and To for a
	// removed one.
	From string `json:"from,omitempty"`
	To   string `json:"to,omitempty"`
}

// String returns a line: "~ spec.replicas: 1 -> 2".
func (f *Field) String() string {
	switch f.Kind {
	case engine.Added:
		return "+ " + f.Path + ": " + f.To
	case engine.Removed:
		return "- " + f.Path + ": " + f.From
	case engine.Moved:
		return "> " + f.Path + ": from place " + f.From + " to " + f.To
	case engine.Replaced:
	}
	return "~ " + f.Path + ": " + f.From + " -> " + f.To
}

// FieldOf returns a field of a change, escaped.
func FieldOf(f *engine.FieldChange) Field {
	out := Field{Path: engine.PathString(f.Path), Kind: f.Kind}
	escape(&out.Path)
	if out.Path == "" {
		out.Path = "(the whole object)"
	}
	if f.Kind != engine.Added {
		out.From = valueText(f.From)
	}
	if f.Kind != engine.Removed {
		out.To = valueText(f.To)
	}
	return out
}

// valueLength bounds a value in a report, in bytes.
const valueLength = 400

// valueText is a value as JSON on one line.
func valueText(v any) string {
	text, err := structured.MarshalLine(v)
	if err != nil {
		return fmt.Sprintf("(no JSON value: %T)", v)
	}
	text = strings.TrimSuffix(text, "\n")
	escape(&text)
	if len(text) <= valueLength {
		return text
	}
	end := valueLength
	for !utf8.RuneStart(text[end]) {
		end--
	}
	return fmt.Sprintf("%s... (%d bytes)", text[:end], len(text))
}
