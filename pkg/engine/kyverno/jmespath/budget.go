package jmespath

import (
	"encoding/json"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
)

// The bounds of one search beside those of the rule that it belongs to. They are far
// beyond what policies do, and low enough that a hostile one ends within a second.
const (
	maxSteps = 2_000_000 // nodes evaluated, elements and values looked at
	maxText  = 4 << 20   // bytes of a text that a function builds
)

// limit is the share of a search in the budget of a rule.
//
//nolint:gochecknoglobals // an immutable value
var limit = engine.LimitError{What: "steps in one expression", Max: maxSteps}

// fits returns a *engine.LimitError if a text of so many bytes must not be built.
func fits(bytes int) error {
	if bytes > maxText {
		return &engine.LimitError{What: "bytes of text", Max: maxText}
	}
	return nil
}

// text is a value's JSON, with characters escaped as encoding/json does by default.
func (e *env) text(value any) (string, error) {
	size, err := e.Measure(value)
	if err != nil {
		return "", err
	}
	if err := fits(size); err != nil {
		return "", err
	}
	text, err := json.Marshal(value)
	return string(text), err
}

// decode reads JSON. Its numbers are canonical.
func (e *env) decode(text string) (any, error) {
	if err := fits(len(text)); err != nil {
		return nil, err
	}
	if err := e.Decode(text); err != nil {
		return nil, err
	}
	var value any
	if err := json.Unmarshal([]byte(text), &value); err != nil {
		return nil, err
	}
	return canonicalTree(value), nil
}
