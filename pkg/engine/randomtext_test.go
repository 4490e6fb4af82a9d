package engine_test

import (
	"errors"
	"fmt"
	"regexp"
	"regexp/syntax"
	"strings"
	"testing"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/limit"
)

// The patterns are read in POSIX's syntax, and so does CompilePOSIX.
func matches(pattern, text string) bool {
	return regexp.MustCompilePOSIX("^(" + pattern + ")$").MatchString(text)
}

// What names no upper bound repeats ten times, counted as goregen counts its 4,096.
func TestRepetitionsAreBounded(t *testing.T) {
	for pattern, want := range map[string]struct{ least, most int }{
		"x*": {0, 10}, "x+": {1, 10}, "x{0,}": {0, 10}, "x{1,}": {1, 10}, "x{3,}": {3, 12}, "x{2,5}": {2, 5}, "x{7}": {7, 7},
	} {
		least, most := 1000, 0
		source := engine.NewRandom(1)
		for range 1000 {
			text, err := source.Text(pattern)
			if err != nil {
				t.Fatal(err)
			}
			least, most = min(least, len(text)), max(most, len(text))
		}
		if least != want.least || most != want.most {
			t.Errorf("%q repeats %d to %d times, want %d to %d", pattern, least, most, want.least, want.most)
		}
	}
}

func TestClassesPreferPrintableCharacters(t *testing.T) {
	for _, pattern := range []string{".", "[^a]", `[\x01-\x{10ffff}]`, "[^[:alpha:]]"} {
		source := engine.NewRandom(1)
		for range 500 {
			text, err := source.Text(pattern)
			if err != nil {
				t.Fatal(err)
			}
			if len(text) != 1 || text[0] < ' ' || text[0] > '~' {
				t.Errorf("%q gives %q", pattern, text)
			}
		}
	}
}

// Patterns that Kyverno's generator refuses, or panics on.
func TestPatternsWithoutTexts(t *testing.T) {
	for _, pattern := range []string{
		"[", "(", "*", "a{1001}", "((a{1000}){1000}){1000}", "\xff", // no regular expressions
		`\d{3}`, `\w+`, `[\d]`, `\S`, `\bx`, `\Aab\z`, `\pL`, `\Q.\E`, "(?i)ab", "(?:a|b)", "(?P<x>a)", // Perl's
		`[^\x00-\x{10FFFF}]`, `a[\x00]`, `\x00`, `\x{d800}`, `[\x{d800}-\x{dfff}]`, // nothing that a string can hold
	} {
		text, err := engine.NewRandom(1).Text(pattern)
		if err == nil || !strings.HasPrefix(err.Error(), fmt.Sprintf("pattern %#q: ", pattern)) || text != "" {
			t.Errorf("%q gives %q, %v; want an error of the pattern", pattern, text, err)
		}
	}
	_, err := engine.NewRandom(1).Text(`\d`)
	var syntactic *syntax.Error
	if !errors.As(err, &syntactic) || syntactic.Code != syntax.ErrInvalidEscape {
		t.Errorf("error %v, want that of regexp/syntax", err)
	}
	if want := "pattern `\\d`: it is no POSIX regular expression: error parsing regexp: invalid escape sequence: `\\d`"; err.Error() != want {
		t.Errorf("error %v, want %s", err, want)
	}
}

// hollow is walked through for long without giving a character.
const hollow = "((((((((()+)+)+)+)+)+)+)+)+"

func TestTextsAreBounded(t *testing.T) {
	for pattern, want := range map[string]int{
		strings.Repeat("a", 1001):      1000,   // bytes of pattern
		strings.Repeat("(a{900})", 14): 10_000, // bytes of text
		hollow:                         50_000, // steps
	} {
		var over *limit.Error
		if text, err := engine.NewRandom(1).Text(pattern); !errors.As(err, &over) || over.Max != want {
			t.Errorf("%.40q gives %.20q, %v; want the limit of %d", pattern, text, err, want)
		}
	}
}

func FuzzText(f *testing.F) {
	for _, pattern := range []string{
		"[a-z]{3}", "(a|b)*", "^x$", "[^a]", `\x{d7ff}`, "a{2,}", "é", "(((a*)*)*)*", "a+?", "a|", "a*b+c?", "(x|y){2,4}-[^a-z]", "(|a)",
		"[[:alpha:]]{3}", ".{4}", "x{2,4}y{3,}", "x{0}", "[äö]", `\.\x41\t\n`, `[\x01-\x1f]{3}`, `[\x{d000}-\x{e000}]{20}`,
	} {
		for seed := range uint64(5) {
			f.Add(pattern, seed)
		}
	}
	f.Fuzz(func(t *testing.T, pattern string, seed uint64) {
		text, err := engine.NewRandom(seed).Text(pattern)
		if again, againErr := engine.NewRandom(seed).Text(pattern); again != text || (err == nil) != (againErr == nil) {
			t.Errorf("%q gives %q, %v; then %q, %v", pattern, text, err, again, againErr)
		}
		if err == nil && !strings.ContainsAny(pattern, "^$") && !matches(pattern, text) {
			t.Errorf("%q gives %q, which does not match", pattern, text)
		}
	})
}
