package randomtext

import (
	"fmt"
	"math/rand/v2"
	"regexp/syntax"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/limit"
)

// The bounds of texts. They are far beyond names and labels, and low enough that a
// hostile pattern ends within milliseconds.
const (
	maxPattern = 1_000  // bytes of a pattern
	maxText    = 10_000 // bytes of a text
	maxSteps   = 50_000 // parts of a pattern that are walked through for a text
)

// Source draws a series of texts, for one evaluation of policies: equal seeds and
// equal patterns give equal series. It is not for concurrent use.
type Source struct {
	seed    uint64
	numbers *rand.Rand // nil before the first text
}

// New returns the source of the series that belongs to a seed.
func New(seed uint64) *Source {
	return &Source{seed: seed}
}

// Text draws the next text, which matches the pattern from its beginning to its
// end unless ^ or $ stand in the midst of the pattern. The error is a
// *PatternError or a *limit.Error.
func (s *Source) Text(pattern string) (string, error) {
	if len(pattern) > maxPattern {
		return "", &limit.Error{What: "bytes in a pattern of random()", Max: maxPattern}
	}
	parsed, err := syntax.Parse(pattern, syntax.POSIX)
	if err != nil {
		return "", &PatternError{Pattern: pattern, Err: fmt.Errorf("it is no POSIX regular expression: %w", err)}
	}
	if s.numbers == nil {
		s.numbers = rand.New(rand.NewPCG(s.seed, s.seed)) // reproducible on purpose
	}
	d := drawing{pattern: pattern, numbers: s.numbers}
	if err := d.draw(parsed); err != nil {
		return "", err
	}
	return string(d.text), nil
}
