package jmespath

import (
	"encoding/json"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
)

// The bounds of one search and of all searches of one evaluation. They are far
// beyond what policies do, and low enough that a hostile one ends within seconds.
const (
	maxSteps      = 2_000_000  // nodes evaluated, elements and values looked at
	maxTotalSteps = 50_000_000 // the same, in all searches
)

// MaxText is how many bytes a text may have that a function builds.
const MaxText = 4 << 20

// Budget is what one search may still spend. The zero Budget is empty: see Grant.
type Budget struct{ granted, left int }

// Grant returns the budget of a search, given what the searches before it in the
// same evaluation have spent together.
func Grant(spent int) Budget {
	steps := min(maxSteps, maxTotalSteps-spent)
	return Budget{granted: steps, left: steps}
}

// Spent is how many steps were spent.
func (b *Budget) Spent() int { return b.granted - b.left }

// Spend accounts for steps. The error is a *engine.LimitError.
func (b *Budget) Spend(steps int) error {
	b.left -= steps
	switch {
	case b.left >= 0:
		return nil
	case b.granted < maxSteps:
		return &engine.LimitError{What: "steps in the expressions of one evaluation", Max: maxTotalSteps}
	}
	return &engine.LimitError{What: "steps in one expression", Max: maxSteps}
}

// SpendText accounts for building a text of so many bytes. The error is a *engine.LimitError.
func (b *Budget) SpendText(bytes int) error {
	if bytes > MaxText {
		return &engine.LimitError{What: "bytes of text", Max: MaxText}
	}
	return b.Spend(bytes / 16)
}

// Measure walks a value as if it were a tree, as whatever reads it will: a small
// expression can share one list so often that its text would not
// fit into any memory. It returns about how many bytes the value's JSON has.
func (b *Budget) Measure(value any) (int, error) {
	if err := b.Spend(1); err != nil {
		return 0, err
	}
	total := 8
	switch v := value.(type) {
	case string:
		total += len(v)
		return total, b.Spend(len(v) / 16)
	case []any:
		for _, item := range v {
			n, err := b.Measure(item)
			if err != nil {
				return 0, err
			}
			total += n
		}
	case map[string]any:
		for key, item := range v {
			n, err := b.Measure(item)
			if err != nil {
				return 0, err
			}
			total += n + len(key)
		}
	}
	return total, nil
}

// Text is a value's JSON, with characters escaped as encoding/json does by default.
func (b *Budget) Text(value any) (string, error) {
	size, err := b.Measure(value)
	if err != nil {
		return "", err
	}
	if err := b.SpendText(size); err != nil {
		return "", err
	}
	text, err := json.Marshal(value)
	return string(text), err
}

// Decode reads JSON. Its numbers are Canonical.
func (b *Budget) Decode(text []byte) (any, error) {
	if err := b.SpendText(len(text)); err != nil {
		return nil, err
	}
	var value any
	if err := json.Unmarshal(text, &value); err != nil {
		return nil, err
	}
	return canonicalTree(value), nil
}
