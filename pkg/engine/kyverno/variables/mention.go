package variables

import (
	"strings"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
)

// Mentions reports whether a text occurs in any string or key of a document.
func Mentions(doc any, text string) bool {
	switch v := doc.(type) {
	case string:
		return strings.Contains(v, text)
	case []any:
		for _, item := range v {
			if Mentions(item, text) {
				return true
			}
		}
	case map[string]any:
		for key, item := range v {
			if strings.Contains(key, text) || Mentions(item, text) {
				return true
			}
		}
	}
	return false
}

// Used reports whether a document holds variables or references.
func Used(doc any) bool { return Mentions(doc, "{{") || Mentions(doc, "$(") }

// Plain returns a text without variables, and engine.Computed for any other.
func Plain(text string) string {
	if Used(text) {
		return engine.Computed
	}
	return text
}
