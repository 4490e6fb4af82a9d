package jmespath

import (
	"cmp"
	"crypto/md5"
	"crypto/sha1"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"math"
	"regexp"
	"regexp/syntax"
	"strings"
	"unicode/utf8"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/limit"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/selector"
)

// Kyverno's functions on strings.

func compare(a, b string) int64 { return int64(strings.Compare(a, b)) }

// replace replaces all occurrences, or as many as the fourth argument says.
func replace(_ *Interpreter, args []any) (any, error) {
	text, old, with, times := args[0].(string), args[1].(string), args[2].(string), -1
	if n, _ := Number(args[len(args)-1]); len(args) > 3 && n >= 0 && n < math.MaxInt32 {
		times = int(n)
	}
	count := strings.Count(text, old)
	if times >= 0 {
		count = min(count, times)
	}
	if err := limit.Size(len(text) + count*(len(with)-len(old))); err != nil {
		return nil, err
	}
	return strings.Replace(text, old, with, times), nil
}

// trim looks each character up in the cutset; the library would search for it.
func trim(text, characters string) string {
	cutset := make(map[rune]bool)
	for _, r := range characters {
		cutset[r] = true
	}
	return strings.TrimFunc(text, func(r rune) bool { return cutset[r] })
}

// bytesOfPiece is the memory of a piece of a string besides its bytes: the string header and the list item.
const bytesOfPiece = 32

func split(_ *Interpreter, args []any) (any, error) {
	text, separator := args[0].(string), args[1].(string)
	if err := limit.Size(bytesOfPiece * strings.Count(text, separator)); err != nil {
		return nil, err
	}
	var list []any
	for _, part := range strings.Split(text, separator) {
		list = append(list, part)
	}
	return list, nil
}

// truncate counts characters; a negative length counts as 0.
func truncate(_ *Interpreter, args []any) (any, error) {
	text := args[0].(string)
	want, _ := Number(args[1])
	for i := range text {
		if want < 1 {
			return strings.ToValidUTF8(text[:i], string(utf8.RuneError)), nil
		}
		want--
	}
	return text, nil
}

func toBoolean(_ *Interpreter, args []any) (any, error) {
	switch strings.ToLower(args[0].(string)) {
	case "true":
		return true, nil
	case "false":
		return false, nil
	}
	return nil, fmt.Errorf("lowercase argument must be 'true' or 'false' (provided: '%.200s')", args[0])
}

func base64Decode(_ *Interpreter, args []any) (any, error) {
	decoded, err := base64.StdEncoding.DecodeString(args[0].(string))
	return string(decoded), err
}

func base64Encode(text string) string { return base64.StdEncoding.EncodeToString([]byte(text)) }
func sha256Sum(text string) string    { return fmt.Sprintf("%x", sha256.Sum256([]byte(text))) }
func sha1Sum(text string) string      { return fmt.Sprintf("%x", sha1.Sum([]byte(text))) }
func md5Sum(text string) string       { return fmt.Sprintf("%x", md5.Sum([]byte(text))) }

// random refuses an empty pattern in Kyverno's words.
func random(in *Interpreter, args []any) (any, error) {
	if args[0] == "" {
		return nil, errors.New("no pattern provided")
	}
	return in.random.Text(args[0].(string))
}

func patternMatch(_ *Interpreter, args []any) (any, error) {
	text, _ := scalarText(args[1])
	return selector.MatchWildcard(args[0].(string), text), nil
}

// The bounds of a regular expression.
const (
	maxRegex = 10_000 // bytes
	// instructions (ten counted repeats can make millions), times groups, times visited characters
	maxSearch = 1 << 27
)

// compileRegex compiles an expression for a search in a string. A search cannot be stopped, and visits up to
// all instructions for each character.
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

// literally is the library's Expand for a plain string.
func literally(_ *regexp.Regexp, dst []byte, with, _ string, _ []int) []byte {
	return append(dst, with...)
}

// regexReplace is the library's ReplaceAll with limits on time and on the size of the result.
func regexReplace(expand func(re *regexp.Regexp, dst []byte, with, text string,
	match []int) []byte,
) func(*Interpreter, []any) (any, error) {
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

// allMatches finds matches in growing batches and checks the time in between, since each match may scan the
// rest of the string.
func allMatches(in *Interpreter, re *regexp.Regexp, text string) ([][]int, error) {
	for most := 8; ; most *= 4 {
		matches := re.FindAllStringSubmatchIndex(text, most)
		if err := in.clock.Err(); len(matches) < most || err != nil {
			return matches, err
		}
	}
}
