// This file draws random strings that match a regular expression, as the function random() of Kyverno's
// expression languages does.
//
// Both languages, JMESPath and CEL, hand the pattern to github.com/zach-klippenstein/goregen with its
// defaults. It reads POSIX syntax, so that \d, \w, (?i) and everything else that Perl added is an error, and
// ^ and $ produce nothing, wherever they stand. This package keeps that, and differs where a string would be
// useless in an object: unbounded repetition (*, + and {n,}) repeats up to 10 times rather than 4,096; "."
// and classes draw printable ASCII characters where they have any, rather than any code point or none; and a
// pattern on which the generator panics is an error. Strings are drawn from a seed, at bounded cost.

package engine

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"regexp/syntax"
	"slices"
	"unicode/utf8"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/limit"
)

// The bounds of strings: far beyond names and labels, and low enough that a hostile pattern ends within
// milliseconds.
const (
	maxPattern = 1_000  // bytes of a pattern
	maxText    = 10_000 // bytes of a string
	maxSteps   = 50_000 // parts of a pattern visited for a string
	maxRepeat  = 10     // of an unbounded repetition
)

const (
	blank, tilde = 0x20, 0x7e // from space to tilde, ASCII is printable
	// The code points that UTF-16 needs for itself; no string can hold them.
	surrogates, afterSurrogates = 0xd800, 0xe000
)

// Random draws a series of strings, for one evaluation of policies: equal seeds and
// equal patterns give equal series. It is not for concurrent use.
type Random struct{ numbers rand.PCG }

// NewRandom returns the source of the series that belongs to a seed.
func NewRandom(seed uint64) *Random {
	return &Random{*rand.NewPCG(seed, seed)} // reproducible on purpose
}

// errNothing is the error for a pattern such as [^\x00-\x{10FFFF}], and for one that matches only NUL or half
// a surrogate pair, which strings do not hold.
var errNothing = errors.New("it matches no text")

// Text draws the next string. The pattern matches all of it, unless ^ or $ stand inside the pattern. The
// error says why there is none; it wraps a *limit.Error, or the *syntax.Error of a pattern that is not in
// POSIX syntax.
func (s *Random) Text(pattern string) (string, error) {
	if len(pattern) > maxPattern {
		return "", &limit.Error{What: "bytes in a pattern of random()", Max: maxPattern}
	}
	parsed, err := syntax.Parse(pattern, syntax.POSIX)
	if err != nil {
		return "", fmt.Errorf("pattern %#.200q: it is no POSIX regular expression: %w", pattern, err)
	}
	d := drawing{numbers: rand.New(&s.numbers)}
	if err := d.draw(parsed); errors.Is(err, errNothing) {
		return "", fmt.Errorf("pattern %#.200q: %w", pattern, err)
	} else if err != nil {
		return "", err
	}
	return string(d.text), nil
}

// drawing is one string in progress.
type drawing struct {
	numbers *rand.Rand
	text    []byte
	steps   int
}

func (d *drawing) draw(re *syntax.Regexp) error {
	if d.steps++; d.steps > maxSteps {
		return &limit.Error{What: "steps of random()", Max: maxSteps}
	}
	times := 1 // draws of everything below
	switch re.Op {
	case syntax.OpEmptyMatch, syntax.OpBeginLine, syntax.OpEndLine:
		return nil
	case syntax.OpLiteral:
		for _, r := range re.Rune {
			if err := d.write(r); err != nil {
				return err
			}
		}
		return nil
	case syntax.OpCharClass:
		return d.class(re.Rune)
	case syntax.OpAnyCharNotNL:
		return d.class([]rune{blank, tilde})
	case syntax.OpAlternate:
		return d.draw(re.Sub[d.numbers.IntN(len(re.Sub))])
	case syntax.OpCapture, syntax.OpConcat:
	case syntax.OpStar:
		times = d.between(0, maxRepeat)
	case syntax.OpPlus:
		times = d.between(1, maxRepeat)
	case syntax.OpQuest:
		times = d.between(0, 1)
	case syntax.OpRepeat:
		most := re.Max
		if most < 0 { // {n,} is n-1 times and then a +, and {0,} a *
			most = max(re.Min-1, 0) + maxRepeat
		}
		times = d.between(re.Min, most)
	default:
		return errNothing
	}
	for range times {
		for _, sub := range re.Sub {
			if err := d.draw(sub); err != nil {
				return err
			}
		}
	}
	return nil
}

func (d *drawing) between(least, most int) int { return least + d.numbers.IntN(most-least+1) }

// class draws a character of a class, given as pairs of first and last.
func (d *drawing) class(ranges []rune) error {
	candidates := within(ranges, blank, tilde)
	if len(candidates) == 0 {
		candidates = slices.Concat(within(ranges, 1, surrogates-1), within(ranges, afterSurrogates, utf8.MaxRune))
	}
	total := 0
	for pair := range slices.Chunk(candidates, 2) {
		total += int(pair[1]-pair[0]) + 1
	}
	if total == 0 {
		return errNothing
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
		return errNothing
	}
	if d.text = utf8.AppendRune(d.text, r); len(d.text) > maxText {
		return &limit.Error{What: "bytes of random text", Max: maxText}
	}
	return nil
}
