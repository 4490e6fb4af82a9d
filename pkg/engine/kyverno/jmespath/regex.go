package jmespath

import (
	"io"
	"regexp"
	"regexp/syntax"
	"unicode/utf8"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
)

// The bounds of a regular expression.
const (
	maxRegex   = 10_000  // bytes
	maxProgram = 50_000  // instructions; ten counted repeats can make millions
	maxSlots   = 2 << 20 // instructions times positions of groups, kept while it searches
)

// regex is a compiled regular expression. A search visits, for each character, up to all
// instructions.
type regex struct {
	*regexp.Regexp
	parsed       *syntax.Regexp
	instructions int
}

// compileRegex accounts for the compilation.
func compileRegex(e *env, expr string) (*regex, error) {
	if len(expr) > maxRegex {
		return nil, &engine.LimitError{What: "bytes of regular expression", Max: maxRegex}
	}
	parsed, err := syntax.Parse(expr, syntax.Perl)
	if err != nil {
		return nil, err
	}
	instructions := size(parsed)
	if instructions > maxProgram {
		return nil, &engine.LimitError{What: "instructions of a regular expression", Max: maxProgram}
	}
	if err := e.Spend(10 * instructions); err != nil {
		return nil, err
	}
	compiled, err := regexp.Compile(expr)
	return &regex{Regexp: compiled, parsed: parsed, instructions: instructions}, err
}

// size is about how many instructions an expression compiles to.
func size(re *syntax.Regexp) int {
	n := 1
	for _, sub := range re.Sub {
		n += size(sub)
	}
	switch re.Op {
	case syntax.OpLiteral:
		n += len(re.Rune)
	case syntax.OpCapture, syntax.OpAlternate:
		n += 1 + len(re.Sub)
	case syntax.OpRepeat:
		n *= 1 + max(re.Min, re.Max)
	}
	return min(n, maxProgram+1)
}

func looksBack(re *syntax.Regexp) bool {
	switch re.Op {
	case syntax.OpBeginLine, syntax.OpBeginText, syntax.OpWordBoundary, syntax.OpNoWordBoundary:
		return true
	}
	for _, sub := range re.Sub {
		if looksBack(sub) {
			return true
		}
	}
	return false
}

func regexMatch(e *env, args []any) (any, error) {
	text, _ := scalarText(args[1])
	re, err := compileRegex(e, args[0].(string))
	if err != nil {
		return nil, err
	}
	if err := e.Read(len(text) * re.instructions); err != nil {
		return nil, err
	}
	return re.MatchString(text), nil
}

func regexReplaceAll(e *env, args []any) (any, error) {
	with, _ := scalarText(args[2])
	return regexReplace(e, args, func(re *regex, dst []byte, text string, match []int) []byte {
		return re.ExpandString(dst, with, text, match)
	})
}

func regexReplaceAllLiteral(e *env, args []any) (any, error) {
	with, _ := scalarText(args[2])
	return regexReplace(e, args, func(_ *regex, dst []byte, _ string, _ []int) []byte {
		return append(dst, with...)
	})
}

// regexReplace is regexp's ReplaceAll with an eye on what the search costs, and on the size of
// the result.
func regexReplace(e *env, args []any,
	expand func(re *regex, dst []byte, text string, match []int) []byte,
) (any, error) {
	text, _ := scalarText(args[1])
	re, err := compileRegex(e, args[0].(string))
	if err != nil {
		return nil, err
	}
	if re.instructions*(1+re.NumSubexp()) > maxSlots {
		return nil, &engine.LimitError{What: "instructions times groups of a regular expression", Max: maxSlots}
	}
	var result []byte
	end := 0
	err = re.each(e, text, func(match []int) error {
		result = expand(re, append(result, text[end:match[0]]...), text, match)
		end = match[1]
		return fits(len(result))
	})
	return string(append(result, text[end:]...)), err
}

// shortSearches is what the searches for all matches may cost for them to be left to the
// library, in characters times instructions.
const shortSearches = 1 << 20

// each calls a function for each match, as FindAllStringSubmatchIndex finds them. That can look
// at the rest of the text for each match, and cannot be stopped; so each match of a long
// text is searched for by itself, and what that looks at is accounted for.
func (r *regex) each(e *env, text string, found func(match []int) error) error {
	if len(text)*len(text)*r.instructions <= shortSearches {
		for _, match := range r.FindAllStringSubmatchIndex(text, -1) {
			if err := found(match); err != nil {
				return err
			}
		}
		return e.Read(len(text) * r.instructions)
	}
	next := r.Regexp
	if looksBack(r.parsed) {
		// It finds what is behind the first character, which it is given to look back at.
		next = regexp.MustCompile(`^(?s:.)(?s:.*?)(` + r.parsed.String() + `)`)
	}
	m := meter{env: e, cost: r.instructions * (1 + r.NumSubexp()/4)}
	previous := -1
	for pos := 0; pos <= len(text); {
		var match []int
		if pos == 0 || next == r.Regexp {
			match = m.search(r.Regexp, text, pos)
		} else {
			_, width := utf8.DecodeLastRuneInString(text[:pos])
			if match = m.search(next, text, pos-width); match != nil {
				match = match[2:] // the expression is the first group
			}
		}
		if m.err != nil || match == nil {
			return m.err
		}
		empty := match[1] == pos
		if !empty || match[0] != previous { // not an empty match right behind another
			if err := found(match); err != nil {
				return err
			}
		}
		previous, pos = match[1], match[1]
		if empty {
			_, width := utf8.DecodeRuneInString(text[pos:])
			pos += max(width, 1)
		}
	}
	return m.pay()
}

// meter reads a text for a search, and accounts for what it has read.
type meter struct {
	*env
	cost   int // of a byte
	rest   string
	unpaid int
	err    error
}

// search returns the first match behind a place, as positions in the whole text.
func (m *meter) search(re *regexp.Regexp, text string, from int) []int {
	m.rest = text[from:]
	match := re.FindReaderSubmatchIndex(m)
	for i := range match {
		if match[i] >= 0 {
			match[i] += from
		}
	}
	return match
}

// ReadRune is that of io.RuneReader. The text ends where the budget does.
func (m *meter) ReadRune() (r rune, size int, err error) {
	const often = 1 << 10
	if m.unpaid >= often && m.pay() != nil || m.rest == "" {
		return 0, 0, io.EOF
	}
	r, size = utf8.DecodeRuneInString(m.rest)
	m.rest, m.unpaid = m.rest[size:], m.unpaid+size
	return r, size, nil
}

func (m *meter) pay() error {
	if m.err == nil {
		m.err, m.unpaid = m.Read(m.unpaid*m.cost), 0
	}
	return m.err
}
