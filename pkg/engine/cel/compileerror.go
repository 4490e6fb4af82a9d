package cel

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/google/cel-go/cel"
)

// CompileError is an expression that does not compile. It has all problems, each with its place in the expression
// below it.
type CompileError struct{ text string }

// Error is the text.
func (e *CompileError) Error() string { return e.text }

func newCompileError(expression string, issues *cel.Issues) *CompileError {
	var problems []string
	for _, issue := range issues.Errors() {
		line, column := issue.Location.Line(), issue.Location.Column()+1 // in characters
		if line > 0 {
			problems = append(problems, fmt.Sprintf("expression, line %d, column %d: %s\n%s", line, column, issue.Message, picture(expression, line, column)))
		} else {
			problems = append(problems, asWhole(expression, limitOf(expression, issue.Message)).text)
		}
	}
	return &CompileError{strings.Join(problems, "\n")}
}

// asWhole is a problem with an expression as a whole.
func asWhole(expression, problem string) *CompileError {
	return &CompileError{"expression " + problem + "\n" + picture(expression, 1, 0)}
}

// limitOf words the parser's own limits, which are no place in an expression: the library
// has nothing but texts for them.
func limitOf(text, message string) string {
	switch {
	case utf8.RuneCountInString(text) > maxExpression:
		return fmt.Sprintf("is longer than %d characters", maxExpression)
	case strings.Contains(message, "recursion"):
		return fmt.Sprintf("is nested more than %d deep", maxNesting)
	}
	return "cannot be read: " + message
}

func wrongType(got *cel.Type, want []*cel.Type) string {
	if len(want) == 1 {
		return fmt.Sprintf("must evaluate to %s, not %s", want[0], got)
	}
	return fmt.Sprintf("must evaluate to one of %v, not %s", want, got)
}

// maxPicture is how many characters of a line are shown around the problem.
const maxPicture = 100

// picture returns the line with a caret below the column; without a caret where the
// column is 0.
func picture(expression string, line, column int) string {
	lines := strings.Split(expression, "\n")
	if line > len(lines) {
		return "  | " // the expression ended too early
	}
	text := []rune(strings.ReplaceAll(strings.TrimRight(lines[line-1], "\r"), "\t", " "))
	caret := min(column, len(text)+1) - 1
	before, after := "", ""
	if from := caret - maxPicture/2; from > 0 && len(text) > maxPicture {
		text, caret, before = text[from:], caret-from+1, "…"
	}
	if len(text) > maxPicture {
		text, after = text[:maxPicture], "…"
	}
	picture := "  | " + before + string(text) + after
	if column == 0 {
		return picture
	}
	return picture + "\n  | " + strings.Repeat(" ", caret) + "^"
}
