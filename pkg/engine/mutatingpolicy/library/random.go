package library

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"regexp/syntax"
	"slices"
	"strings"
)

const (
	maxPattern   = 1_000  // bytes of a pattern that random() takes
	maxRepeat    = 10     // of * and + and {n,}, beyond their minimum
	maxDrawn     = 10_000 // bytes of one random text
	maxSteps     = 50_000 // parts of a pattern that are walked through for one text
	firstASCII   = 0x20   // negated classes draw from what is printable and plain
	lastASCII    = 0x7e
	nothingDrawn = "the pattern matches no text"
)

// LimitError is a bound on a function that was reached.
type LimitError struct {
	What string
	Max  int
}

// Error names the bound.
func (e *LimitError) Error() string { return fmt.Sprintf("reached the limit of %d %s", e.Max, e.What) }

// random returns a text that the regular expression matches as a whole. The same
// series of numbers gives the same text.
func random(numbers *rand.Rand, pattern string) (string, error) {
	if len(pattern) > maxPattern {
		return "", &LimitError{What: "bytes in a pattern of random()", Max: maxPattern}
	}
	parsed, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil {
		return "", err
	}
	g := generator{numbers: numbers}
	err = g.generate(parsed)
	return g.text.String(), err
}

type generator struct {
	numbers *rand.Rand
	text    strings.Builder
	steps   int
}

func (g *generator) generate(re *syntax.Regexp) error {
	if g.steps++; g.steps > maxSteps {
		return &LimitError{What: "steps of random()", Max: maxSteps}
	}
	if g.text.Len() > maxDrawn {
		return &LimitError{What: "bytes of random text", Max: maxDrawn}
	}
	switch re.Op {
	case syntax.OpLiteral:
		for _, r := range re.Rune {
			g.text.WriteRune(r)
		}
	case syntax.OpCharClass:
		return g.class(re.Rune)
	case syntax.OpAnyChar, syntax.OpAnyCharNotNL:
		return g.class([]rune{firstASCII, lastASCII})
	case syntax.OpCapture, syntax.OpConcat:
		for _, sub := range re.Sub {
			if err := g.generate(sub); err != nil {
				return err
			}
		}
	case syntax.OpAlternate:
		return g.generate(re.Sub[g.numbers.IntN(len(re.Sub))])
	case syntax.OpStar:
		return g.repeat(re.Sub[0], 0, maxRepeat)
	case syntax.OpPlus:
		return g.repeat(re.Sub[0], 1, 1+maxRepeat)
	case syntax.OpQuest:
		return g.repeat(re.Sub[0], 0, 1)
	case syntax.OpRepeat:
		most := re.Max
		if most < 0 {
			most = re.Min + maxRepeat
		}
		return g.repeat(re.Sub[0], re.Min, most)
	case syntax.OpNoMatch:
		return errors.New(nothingDrawn)
	default: // anchors and boundaries have no text of their own
	}
	return nil
}

func (g *generator) repeat(re *syntax.Regexp, least, most int) error {
	for range least + g.numbers.IntN(most-least+1) {
		if err := g.generate(re); err != nil {
			return err
		}
	}
	return nil
}

// class draws one of the characters of a class, given as pairs of first and
// last; from the printable ASCII ones as long as there are any.
func (g *generator) class(ranges []rune) error {
	plain := make([]rune, 0, len(ranges))
	for pair := range slices.Chunk(ranges, 2) {
		first, last := max(pair[0], firstASCII), min(pair[1], lastASCII)
		if first <= last {
			plain = append(plain, first, last)
		}
	}
	if len(plain) == 0 {
		plain = ranges
	}
	total := 0
	for pair := range slices.Chunk(plain, 2) {
		total += int(pair[1]-pair[0]) + 1
	}
	if total == 0 {
		return errors.New(nothingDrawn)
	}
	drawn := g.numbers.IntN(total)
	for pair := range slices.Chunk(plain, 2) {
		size := int(pair[1]-pair[0]) + 1
		if drawn < size {
			g.text.WriteRune(pair[0] + rune(drawn))
			return nil
		}
		drawn -= size
	}
	return nil
}
