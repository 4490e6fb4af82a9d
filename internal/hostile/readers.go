package hostile

import (
	"fmt"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
)

// marksInARow is how many combining marks a script puts on one letter at most: Tibetan has
// eight below each other.
const marksInARow = 8

// Terminal returns an error if a string acts on a terminal that shows it, or holds what a reader
// cannot see. Tabs and line breaks are no such thing.
func Terminal(shown string) error {
	for i, r := range shown {
		if r == '\n' || r == '\t' || r >= ' ' && r <= '~' {
			continue
		}
		switch _, size := utf8.DecodeRuneInString(shown[i:]); {
		case r == utf8.RuneError && size == 1:
			return fmt.Errorf("an invalid byte in %q", around(shown, i))
		case unicode.In(r, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp):
			return fmt.Errorf("the control character %U in %q", r, around(shown, i))
		case unicode.In(r, unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector, unicode.Noncharacter_Code_Point):
			return fmt.Errorf("the invisible character %U in %q", r, around(shown, i))
		}
	}
	return nil
}

// Legible returns an error if a string covers the lines above and below it with combining marks.
func Legible(shown string) error {
	marks := 0
	for i, r := range shown {
		if marks++; r <= unicode.MaxASCII || !unicode.In(r, unicode.Mn, unicode.Me) {
			marks = 0
		}
		if marks > marksInARow {
			return fmt.Errorf("%d combining marks in a row in %q", marks, around(shown, i))
		}
	}
	return nil
}

// around is what stands around a byte of a string.
func around(text string, i int) string { return text[max(0, i-60):min(len(text), i+30)] }

// The commands that runners take from what a step prints.
var (
	// ActionCommand.TryParseV2 of actions/runner, which trims white space as .NET does.
	githubCommand = regexp.MustCompile(`(?m)^[\s\p{Z}\x85]*::[A-Za-z-]+( .*?)?::`)
	// ActionCommand.TryParse of actions/runner; CommandUtil of microsoft/azure-pipelines-agent;
	// the service messages of TeamCity.
	bracketCommand = regexp.MustCompile(`##(vso|teamcity)?\[`)
)

// Runner returns an error if a CI runner takes a line of a string for a command.
func Runner(shown string) error {
	for _, command := range []*regexp.Regexp{githubCommand, bracketCommand} {
		if at := command.FindStringIndex(shown); at != nil {
			return fmt.Errorf("a command in %q", around(shown, at[0]))
		}
	}
	return nil
}

// Lines returns an error if a string that has so many lines without hostile strings has another
// number of them.
func Lines(shown string, want int) error {
	if got := strings.Count(shown, "\n"); got != want {
		return fmt.Errorf("%d lines, want %d:\n%s", got, want, shown)
	}
	return nil
}
