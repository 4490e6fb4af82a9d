package jmespath

import (
	"errors"
	"regexp/syntax"
	"slices"
	"strings"
)

const (
	maxRepeat    = 10     // of * and + and {n,}, beyond their minimum
	maxGenerated = 10_000 // bytes of one random text
	lastASCII    = 0x7e   // negated classes draw from what is printable and plain
	firstASCII   = 0x20
)

// random returns a text that the regular expression matches as a whole. The same
// seed gives the same series of texts.
func random(e *evaluation, args []any) (any, error) {
	if args[0] == "" {
		return nil, errors.New("no pattern provided")
	}
	if _, err := compileRegex(e, args[0].(string), ""); err != nil {
		return nil, err
	}
	parsed, err := syntax.Parse(args[0].(string), syntax.Perl)
	if err != nil {
		return nil, err
	}
	g := generator{evaluation: e}
	if err := g.generate(parsed); err != nil {
		return nil, err
	}
	return g.text.String(), nil
}

type generator struct {
	*evaluation
	text strings.Builder
}

func (g *generator) generate(re *syntax.Regexp) error {
	if err := g.spend(1); err != nil {
		return err
	}
	if g.text.Len() > maxGenerated {
		return &LimitError{What: "bytes of random text", Max: maxGenerated}
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
		return g.generate(re.Sub[g.random.IntN(len(re.Sub))])
	case syntax.OpStar:
		return g.repeat(re.Sub[0], 0, maxRepeat)
	case syntax.OpPlus:
		return g.repeat(re.Sub[0], 1, maxRepeat)
	case syntax.OpQuest:
		return g.repeat(re.Sub[0], 0, 1)
	case syntax.OpRepeat:
		most := re.Max
		if most < 0 {
			most = re.Min + maxRepeat
		}
		return g.repeat(re.Sub[0], re.Min, most)
	case syntax.OpNoMatch:
		return errors.New("the pattern matches no text")
	default: // anchors and boundaries have no text of their own
	}
	return nil
}

func (g *generator) repeat(re *syntax.Regexp, least, most int) error {
	for range least + g.random.IntN(most-least+1) {
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
		return errors.New("the pattern matches no text")
	}
	drawn := g.random.IntN(total)
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
