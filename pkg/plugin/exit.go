package plugin

import (
	"errors"
	"fmt"
)

// The exit codes. Preview follows kubectl diff: 1 means "something would
// change", and everything above 1 is trouble. An incomplete preview is never 0
// or 1, because "no changes" must be something to rely on.
const (
	ExitOK         = 0 // preview: nothing would change; apply-existing: all applied, or nothing to do
	ExitChanges    = 1 // preview: something would change
	ExitNothing    = 2 // preview: nothing was evaluated; apply-existing: nothing was written
	ExitIncomplete = 3 // preview: some objects or policies failed; apply-existing: some written and some not
	// ExitInterrupted is what a shell makes of a program that Ctrl-C has ended.
	ExitInterrupted = 130
)

// ExitError carries an exit code to the top. Err is printed there; a nil Err
// ends the program quietly, because all there is to say has been said.
type ExitError struct {
	Code int
	Err  error
}

// Error is the text of the reason.
func (e *ExitError) Error() string {
	if e.Err == nil {
		return fmt.Sprintf("exit code %d", e.Code)
	}
	return e.Err.Error()
}

// Unwrap gives the reason.
func (e *ExitError) Unwrap() error { return e.Err }

// exit ends a command with a code and what is left to say; code 0 is no error.
func exit(code int, err error) error {
	if code == ExitOK && err == nil {
		return nil
	}
	return &ExitError{Code: code, Err: err}
}

// codeOf is the exit code for what a command returned. An error that nobody gave
// a code comes from usage, connection or policies: nothing was done.
func codeOf(err error) int {
	if err == nil {
		return ExitOK
	}
	var e *ExitError
	if errors.As(err, &e) {
		return e.Code
	}
	return ExitNothing
}
