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

// maxText is how many bytes a text may have that a function builds.
const maxText = 4 << 20

// budget is what one search may still spend. The zero budget is empty: see newBudget.
type budget struct{ granted, left int }

// newBudget returns the budget of a search, given what the searches before it in the
// same evaluation have spent together.
func newBudget(spent int) budget {
	steps := min(maxSteps, maxTotalSteps-spent)
	return budget{granted: steps, left: steps}
}

// spent is how many steps were spent.
func (b *budget) spent() int { return b.granted - b.left }

// spend accounts for steps. The error is a *engine.LimitError.
func (b *budget) spend(steps int) error {
	b.left -= steps
	switch {
	case b.left >= 0:
		return nil
	case b.granted < maxSteps:
		return &engine.LimitError{What: "steps in the expressions of one evaluation", Max: maxTotalSteps}
	}
	return &engine.LimitError{What: "steps in one expression", Max: maxSteps}
}

// spendText accounts for building a text of so many bytes. The error is a *engine.LimitError.
func (b *budget) spendText(bytes int) error {
	if bytes > maxText {
		return &engine.LimitError{What: "bytes of text", Max: maxText}
	}
	return b.spend(bytes / 16)
}

// measure walks a value as if it were a tree, as whatever reads it will: a small
// expression can share one list so often that its text would not
// fit into any memory. It returns about how many bytes the value's JSON has.
func (b *budget) measure(value any) (int, error) {
	if err := b.spend(1); err != nil {
		return 0, err
	}
	total := 8
	switch v := value.(type) {
	case string:
		total += len(v)
		return total, b.spend(len(v) / 16)
	case []any:
		for _, item := range v {
			n, err := b.measure(item)
			if err != nil {
				return 0, err
			}
			total += n
		}
	case map[string]any:
		for key, item := range v {
			n, err := b.measure(item)
			if err != nil {
				return 0, err
			}
			total += n + len(key)
		}
	}
	return total, nil
}

// text is a value's JSON, with characters escaped as encoding/json does by default.
func (b *budget) text(value any) (string, error) {
	size, err := b.measure(value)
	if err != nil {
		return "", err
	}
	if err := b.spendText(size); err != nil {
		return "", err
	}
	text, err := json.Marshal(value)
	return string(text), err
}

// decode reads JSON. Its numbers are canonical.
func (b *budget) decode(text []byte) (any, error) {
	if err := b.spendText(len(text)); err != nil {
		return nil, err
	}
	var value any
	if err := json.Unmarshal(text, &value); err != nil {
		return nil, err
	}
	return canonicalTree(value), nil
}
