package variables

import (
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/kyverno/jmespath"
)

// reserved matches the start of a variable that every rule has.
const reserved = `(?:request|target|element)\.[\w.]+`

var (
	singleBraces = regexp.MustCompile(`\{\s*` + reserved + `[^{}"]*\}`)
	bareVariable = regexp.MustCompile(`^` + reserved + `$`)
)

// LooksLikeVariable reports whether a string is a variable without {{ }}, such as "request.operation".
func LooksLikeVariable(text string) bool { return bareVariable.MatchString(text) }

// Inspect looks for mistakes in a string of a policy. It returns the expressions of its variables that
// compile, with "x" for nested variables, and the first variable that is unclosed or in single braces, both
// plain text.
func Inspect(text string) (expressions []*jmespath.Expression, unclosed string) {
	segments, unclosed, err := segmentsOf(text)
	if err != nil {
		return nil, ""
	}
	for _, s := range segments {
		if s.Variable == nil && unclosed == "" {
			unclosed = singleBraces.FindString(s.Text)
		}
	}
	return expressionsIn(segments), unclosed
}

func expressionsIn(segments []Segment) (out []*jmespath.Expression) {
	for _, s := range segments {
		out = append(out, expressionsIn(s.Variable)...)
		if x, err := jmespath.Compile(withPlaceholders(s.Variable)); err == nil && s.Variable != nil {
			out = append(out, x)
		}
	}
	return out
}

// Contains reports whether holds is true for a value or any value below it.
func Contains(doc any, holds func(value any) bool) bool {
	below := func(value any) bool { return Contains(value, holds) }
	switch v := doc.(type) {
	case []any:
		return holds(doc) || slices.ContainsFunc(v, below)
	case map[string]any:
		return holds(doc) || slices.ContainsFunc(slices.Collect(maps.Values(v)), below)
	}
	return holds(doc)
}

// Mentions reports whether a string occurs in any string or key of a document.
func Mentions(doc any, text string) bool {
	return Contains(doc, func(value any) bool {
		written, _ := value.(string)
		fields, _ := value.(map[string]any)
		for key := range fields {
			if strings.Contains(key, text) {
				return true
			}
		}
		return strings.Contains(written, text)
	})
}

// Used reports whether a document has variables or references.
func Used(doc any) bool { return Mentions(doc, "{{") || Mentions(doc, "$(") }

// Plain returns a string without variables, else engine.Computed.
func Plain(text string) string {
	if Used(text) {
		return engine.Computed
	}
	return text
}

// Resolve replaces the references $(path) of a document, and keeps its variables.
func Resolve(doc any, path ...string) (any, error) {
	p := parser{doc: doc, prefix: path, keeps: true}
	return p.parse(doc, nil).fixed, p.err
}
