package variables

import (
	"strings"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
)

// Mentions tells whether a text occurs in any string or key of a document.
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

// Used tells whether a document holds variables or references.
func Used(doc any) bool { return Mentions(doc, "{{") || Mentions(doc, "$(") }

// Plain is a text that no variable has a part in; another one is engine.Computed.
func Plain(text string) string {
	if Used(text) {
		return engine.Computed
	}
	return text
}
