package cel

import (
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
)

// At adds the place of an expression to its error, and how to specify an unknown user that it needs.
func (x *Expression) At(err error) error {
	if err == nil {
		return nil
	}
	err = fmt.Errorf("%s: %w", x.Path, err)
	var unknown *unknownUserError
	if errors.As(err, &unknown) {
		return &engine.UnknownUserError{Why: unknown.why, Err: err}
	}
	return err
}

// maxQuoted bounds an expression in an error, in bytes.
const maxQuoted = 120

// shorten returns an expression on one short line.
func shorten(expression string) string {
	return engine.Shorten(strings.Join(strings.Fields(expression), " "), maxQuoted)
}

// ErrAtomic is a server's error for an apply configuration with values that can only be replaced as a whole.
var ErrAtomic = errors.New("invalid ApplyConfiguration: may not mutate atomic arrays, maps or structs")

// compileError returns all problems of an expression that does not compile, each with its place in the
// expression below it. The parser's own limits have no place, and only strings say which it is.
func compileError(expression string, issues *cel.Issues) error {
	var problems []error
	for _, issue := range issues.Errors() {
		line, column := issue.Location.Line(), issue.Location.Column()+1 // in characters
		problem := asWhole(expression, "cannot be read: "+issue.Message)
		switch {
		case line > 0:
			problem = fmt.Errorf("expression, line %d, column %d: %s\n%s",
				line, column, issue.Message, picture(expression, line, column))
		case utf8.RuneCountInString(expression) > maxExpression:
			problem = asWhole(expression, fmt.Sprintf("is longer than %d characters", maxExpression))
		case strings.Contains(issue.Message, "recursion"):
			problem = asWhole(expression, fmt.Sprintf("is nested more than %d deep", maxNesting))
		}
		problems = append(problems, problem)
	}
	return errors.Join(problems...)
}

func asWhole(expression, problem string) error {
	return errors.New("expression " + problem + "\n" + picture(expression, 1, 0))
}

func wrongType(got *cel.Type, want []*cel.Type) string {
	if len(want) == 1 {
		return fmt.Sprintf("must evaluate to %s, not %s", want[0], got)
	}
	return fmt.Sprintf("must evaluate to one of %v, not %s", want, got)
}

// maxPicture bounds the characters shown around the problem.
const maxPicture = 100

// picture returns the line with a caret below the column; no caret for column 0.
func picture(expression string, line, column int) string {
	lines := strings.Split(expression, "\n")
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

// UnknownUser is the value of request.userInfo for an unknown user. has(request.userInfo.username) is true,
// as for every user. An expression that reads a field fails.
type UnknownUser struct {
	ref.Val // an error: all operations but field access fail
	why     error
}

// NewUnknownUser returns a user who is unknown for a reason.
func NewUnknownUser(why error) UnknownUser {
	return UnknownUser{types.WrapErr(&unknownUserError{"", why}), why}
}

type unknownUserError struct {
	field string // of the user; may be empty
	why   error
}

// Error names the field.
func (e *unknownUserError) Error() string {
	return strings.TrimPrefix(e.field+": the user is not known", ": ")
}

// Type returns a type with fields.
func (UnknownUser) Type() ref.Type {
	return types.NewObjectType("kubernetes.UserInfo", traits.IndexerType|traits.FieldTesterType)
}

// Get fails, since no field is known.
func (u UnknownUser) Get(field ref.Val) ref.Val {
	return types.WrapErr(&unknownUserError{fmt.Sprint(field.Value()), u.why})
}

// IsSet returns true for the name, which every user has. It fails for other fields.
func (u UnknownUser) IsSet(field ref.Val) ref.Val {
	if field.Equal(types.String("username")) == types.True {
		return types.True
	}
	return u.Get(field)
}
