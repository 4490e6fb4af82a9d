package jmespath

import (
	"cmp"
	"regexp"
	"regexp/syntax"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/limit"
)

// The bounds of a regular expression.
const (
	maxRegex  = 10_000  // bytes
	maxSearch = 1 << 27 // instructions, of which ten counted repeats can make millions, times groups times characters that are looked at
)

// compileRegex compiles an expression that is to be searched for in a text. A search cannot be stopped: it visits, for
// each character, up to all instructions.
func compileRegex(expr, text string) (*regexp.Regexp, error) {
	if len(expr) > maxRegex {
		return nil, &limit.Error{What: "bytes of regular expression", Max: maxRegex}
	}
	parsed, err := syntax.Parse(expr, syntax.Perl)
	if err != nil {
		return nil, err
	}
	program, err := syntax.Compile(parsed.Simplify())
	if err != nil {
		return nil, err
	}
	const least = 1000 // characters, since a search takes memory as well
	if len(program.Inst)*(1+parsed.MaxCap()/4)*max(len(text), least) > maxSearch {
		return nil, &limit.Error{What: "steps in one search of a regular expression", Max: maxSearch}
	}
	return regexp.Compile(expr)
}

func regexMatch(_ *Interpreter, args []any) (any, error) {
	text, _ := scalarText(args[1])
	re, err := compileRegex(args[0].(string), text)
	if err != nil {
		return nil, err
	}
	return re.MatchString(text), nil
}

// literally is Expand of the library for a text that is no template.
func literally(_ *regexp.Regexp, dst []byte, with, _ string, _ []int) []byte {
	return append(dst, with...)
}

// regexReplace is ReplaceAll of the library, with an eye on the time and on the size of the result.
func regexReplace(expand func(re *regexp.Regexp, dst []byte, with, text string, match []int) []byte) func(*Interpreter, []any) (any, error) {
	return func(in *Interpreter, args []any) (any, error) {
		text, _ := scalarText(args[1])
		with, _ := scalarText(args[2])
		re, err := compileRegex(args[0].(string), text)
		if err != nil {
			return nil, err
		}
		matches, err := allMatches(in, re, text)
		if err != nil {
			return nil, err
		}
		var result []byte
		end := 0
		for _, match := range matches {
			result = expand(re, append(result, text[end:match[0]]...), with, text, match)
			end = match[1]
			if err := cmp.Or(limit.Size(len(result)), in.clock.Step()); err != nil {
				return nil, err
			}
		}
		return string(append(result, text[end:]...)), nil
	}
}

// allMatches finds ever more matches, since the library may look at the rest of the text for each, and looks at the time
// in between.
func allMatches(in *Interpreter, re *regexp.Regexp, text string) ([][]int, error) {
	for most := 8; ; most *= 4 {
		matches := re.FindAllStringSubmatchIndex(text, most)
		if err := in.clock.Err(); len(matches) < most || err != nil {
			return matches, err
		}
	}
}
