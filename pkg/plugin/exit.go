package plugin

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"

	utilnet "k8s.io/apimachinery/pkg/util/net"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/apply"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/wording"
)

// The exit codes. Preview follows kubectl diff: 1 means "something would
// change", and everything above 1 is trouble. An incomplete preview is never 0
// or 1, because "no changes" must be something to rely on.
const (
	ExitOK         = 0 // preview: nothing would change; apply-existing: all applied, or nothing to do
	ExitChanges    = 1 // preview: something would change
	ExitNothing    = 2 // preview: nothing was evaluated; apply-existing: nothing was written
	ExitIncomplete = 3 // preview: some objects or policies failed; apply-existing: some written and some not
	// ExitInterrupted is what a shell makes of a program that Ctrl-C has ended; see
	// InterruptedError.
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

// writtenCode is the exit code of a run that writes: 0 when all went well, else it
// says whether anything was written at all.
func writtenCode(t apply.Tally, incomplete bool) int {
	switch {
	case t.Failed+t.NotTried == 0 && !incomplete:
		return ExitOK
	case t.Written == 0:
		return ExitNothing
	}
	return ExitIncomplete
}

// InterruptedError ends a run of preview or explain that the user stopped.
type InterruptedError struct{ Objects int } // that had been evaluated

// Error says how far the run had come.
func (e *InterruptedError) Error() string {
	if e.Objects == 0 {
		return "interrupted"
	}
	return "interrupted after " + wording.Plural(e.Objects, "object")
}

// orInterrupted returns how a command has ended, in words of its own where the user
// stopped it: what broke off then, a request for instance, is nobody's fault.
func orInterrupted(ctx context.Context, err error) error {
	if ctx.Err() == nil || !errors.Is(err, context.Canceled) || codeOf(err) == ExitInterrupted {
		return err
	}
	return &ExitError{Code: ExitInterrupted, Err: &InterruptedError{}}
}

// textOf is the text of the error that a command ends with. A server that refuses the
// connection is told in kubectl's words, which every user has met.
func textOf(err error) string {
	var failed *url.Error
	if !errors.As(err, &failed) || !utilnet.IsConnectionRefused(err) {
		return err.Error()
	}
	server := failed.URL
	if u, err := url.Parse(failed.URL); err == nil && u.Host != "" {
		server = u.Host
	}
	return strings.Replace(err.Error(), failed.Error(),
		"The connection to the server "+server+" was refused - did you specify the right host or port?", 1)
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

// interrupted tells whether an error is that of a run that the user stopped.
func interrupted(err error) bool {
	return errors.Is(err, apply.ErrInterrupted) || errors.Is(err, context.Canceled)
}
