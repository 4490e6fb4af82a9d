package randomtext

import (
	"errors"
	"math/rand/v2"
	"regexp/syntax"
	"slices"
	"unicode/utf8"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/limit"
)

const (
	maxRepeat = 10 // of what has no upper bound
	space     = 0x20
	tilde     = 0x7e // from space to it, ASCII is printable
)

// errNothing is the reason of a pattern such as [^\x00-\x{10FFFF}], and of one
// that only what is no text would match: NUL, or half a surrogate pair.
var errNothing = errors.New("it matches no text")

// drawing is one text on its way.
type drawing struct {
	pattern string
	numbers *rand.Rand
	text    []byte
	steps   int
}

func (d *drawing) draw(re *syntax.Regexp) error {
	if d.steps++; d.steps > maxSteps {
		return &limit.Error{What: "steps of random()", Max: maxSteps}
	}
	switch re.Op {
	case syntax.OpLiteral:
		return d.literal(re.Rune)
	case syntax.OpCharClass:
		return d.class(re.Rune)
	case syntax.OpAnyCharNotNL:
		return d.class([]rune{space, tilde})
	case syntax.OpCapture, syntax.OpConcat:
		for _, sub := range re.Sub {
			if err := d.draw(sub); err != nil {
				return err
			}
		}
		return nil
	case syntax.OpAlternate:
		return d.draw(re.Sub[d.numbers.IntN(len(re.Sub))])
	case syntax.OpStar:
		return d.repeat(re.Sub[0], 0, maxRepeat)
	case syntax.OpPlus:
		return d.repeat(re.Sub[0], 1, maxRepeat)
	case syntax.OpQuest:
		return d.repeat(re.Sub[0], 0, 1)
	case syntax.OpRepeat:
		return d.repeat(re.Sub[0], re.Min, greatest(re))
	case syntax.OpEmptyMatch, syntax.OpBeginLine, syntax.OpEndLine:
		return nil
	}
	return &PatternError{Pattern: d.pattern, Err: errNothing}
}

// greatest is how often a {n,m} repeats at most. {n,} is n-1 times and then a +,
// and {0,} a *.
func greatest(re *syntax.Regexp) int {
	if re.Max >= 0 {
		return re.Max
	}
	return max(re.Min-1, 0) + maxRepeat
}

func (d *drawing) repeat(re *syntax.Regexp, least, most int) error {
	for range least + d.numbers.IntN(most-least+1) {
		if err := d.draw(re); err != nil {
			return err
		}
	}
	return nil
}

func (d *drawing) literal(runes []rune) error {
	for _, r := range runes {
		if err := d.write(r); err != nil {
			return err
		}
	}
	return nil
}

// class draws one of the characters of a class, given as pairs of first and last.
func (d *drawing) class(ranges []rune) error {
	candidates := within(ranges, space, tilde)
	if len(candidates) == 0 {
		candidates = slices.Concat(within(ranges, 1, surrogates-1), within(ranges, afterSurrogates, utf8.MaxRune))
	}
	total := 0
	for pair := range slices.Chunk(candidates, 2) {
		total += int(pair[1]-pair[0]) + 1
	}
	if total == 0 {
		return &PatternError{Pattern: d.pattern, Err: errNothing}
	}
	drawn := d.numbers.IntN(total)
	for pair := range slices.Chunk(candidates, 2) {
		size := int(pair[1]-pair[0]) + 1
		if drawn < size {
			return d.write(pair[0] + rune(drawn))
		}
		drawn -= size
	}
	return nil
}

// The code points that UTF-16 needs for itself; no text can hold them.
const (
	surrogates      = 0xd800
	afterSurrogates = 0xe000
)

// within is the part of the ranges that lies between first and last.
func within(ranges []rune, first, last rune) []rune {
	var part []rune
	for pair := range slices.Chunk(ranges, 2) {
		if from, to := max(pair[0], first), min(pair[1], last); from <= to {
			part = append(part, from, to)
		}
	}
	return part
}

func (d *drawing) write(r rune) error {
	if r == 0 || !utf8.ValidRune(r) {
		return &PatternError{Pattern: d.pattern, Err: errNothing}
	}
	if d.text = utf8.AppendRune(d.text, r); len(d.text) > maxText {
		return &limit.Error{What: "bytes of random text", Max: maxText}
	}
	return nil
}
