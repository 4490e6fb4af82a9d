package structured

import (
	"encoding/json"
	"fmt"

	"github.com/jmespath/go-jmespath"
)

// Query is a JMESPath expression over a report of any kind.
type Query struct {
	expression *jmespath.JMESPath
	yaml       bool
}

// ParseQuery returns the query of an expression, which answers in JSON or YAML. It
// fails for an expression that is none.
func ParseQuery(expression string, asYAML bool) (*Query, error) {
	parsed, err := jmespath.Compile(expression)
	if err != nil {
		return nil, fmt.Errorf("query %q: %w", expression, err)
	}
	return &Query{expression: parsed, yaml: asYAML}, nil
}

// Find is what the query finds in a report, which is JSON. It fails for a report on
// which the expression cannot be evaluated.
func (q *Query) Find(report []byte) (string, error) {
	var whole any
	if err := json.Unmarshal(report, &whole); err != nil {
		return "", fmt.Errorf("reading the report: %w", err)
	}
	found, err := q.expression.Search(whole)
	if err != nil {
		return "", fmt.Errorf("query: %w", brief(err))
	}
	text, err := MarshalText(found, q.yaml)
	if err != nil {
		return "", fmt.Errorf("writing what the query found: %w", err)
	}
	return text, nil
}
