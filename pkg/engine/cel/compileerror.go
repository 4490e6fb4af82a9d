package cel

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/google/cel-go/cel"
)

// CompileError is an expression that does not compile.
type CompileError struct {
	Expression string
	Problems   []Problem // at least one
}

// Problem is one mistake in an expression. Line and Column count from 1, in characters;
// they are 0 for the expression as a whole.
type Problem struct {
	Line, Column int
	Message      string
}

func newCompileError(text string, issues *cel.Issues) *CompileError {
	e := &CompileError{Expression: text}
	for _, issue := range issues.Errors() {
		p := Problem{Message: issue.Message}
		if at := issue.Location; at.Line() > 0 {
			p.Line, p.Column = at.Line(), at.Column()+1
		} else {
			p.Message = limitOf(text, issue.Message)
		}
		e.Problems = append(e.Problems, p)
	}
	return e
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

// Error lists the problems, each with its place in the expression below it.
func (e *CompileError) Error() string {
	var b strings.Builder
	for i, p := range e.Problems {
		if i > 0 {
			b.WriteByte('\n')
		}
		if p.Line == 0 {
			b.WriteString("expression " + p.Message + "\n" + e.picture(1, 0))
			continue
		}
		fmt.Fprintf(&b, "expression, line %d, column %d: %s\n%s", p.Line, p.Column, p.Message, e.picture(p.Line, p.Column))
	}
	return b.String()
}

// maxPicture is how many characters of a line are shown around the problem.
const maxPicture = 100

// picture returns the line with a caret below the column; without a caret where the
// column is 0.
func (e *CompileError) picture(line, column int) string {
	lines := strings.Split(e.Expression, "\n")
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
