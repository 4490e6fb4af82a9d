package plugin

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"strings"
	"time"

	utilnet "k8s.io/apimachinery/pkg/util/net"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/limit"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/apply"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/output"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/rbac"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/wording"
)

// The exit codes. Preview follows kubectl diff: 1 means "something would
// change", and everything above 1 is an error. An incomplete preview is never 0
// or 1, because "no changes" must be reliable.
const (
	ExitOK         = 0 // preview: nothing would change; apply-existing: all applied, or nothing to do
	ExitChanges    = 1 // preview: something would change
	ExitNothing    = 2 // preview: there was nothing to evaluate, or nothing could be; apply-existing: nothing was written
	ExitIncomplete = 3 // preview: some objects or policies were not evaluated; apply-existing: some written and some not
	// ExitInterrupted is the code that a shell gives a program that Ctrl-C ended.
	ExitInterrupted = 130
)

// ExitError carries an exit code to Run, which prints Err. A nil Err prints nothing,
// because the command has printed everything.
type ExitError struct {
	Code int
	Err  error
}

// Error returns the text of the reason.
func (e *ExitError) Error() string {
	if e.Err == nil {
		return fmt.Sprintf("exit code %d", e.Code)
	}
	return e.Err.Error()
}

// Unwrap returns the reason.
func (e *ExitError) Unwrap() error { return e.Err }

// exit returns the error that ends a command with a code; nil for code 0 without an error.
func exit(code int, err error) error {
	if code == ExitOK && err == nil {
		return nil
	}
	return &ExitError{Code: code, Err: err}
}

// writtenCode returns the exit code of a run that writes: 0 if all went well, else
// whether anything was written at all. Objects that were left alone as the user was shown do not
// count.
func writtenCode(t apply.Tally, incomplete bool) int {
	switch {
	case t.Failed+t.NotTried == 0 && !incomplete:
		return ExitOK
	case t.Written == 0:
		return ExitNothing
	}
	return ExitIncomplete
}

// interruptedAfter is the error of a run that the user stopped, with how many objects had been evaluated.
func interruptedAfter(objects int) error {
	if objects == 0 {
		return apply.ErrInterrupted
	}
	return fmt.Errorf("%w after %s", apply.ErrInterrupted, wording.Plural(objects, "object"))
}

// ended prints what is left of a run that an error ended after a number of objects, and returns its exit code and error.
func ended(err error, what string, objects int, p output.Printer) (int, error) {
	switch {
	case interrupted(err):
		return ExitInterrupted, errors.Join(interruptedAfter(objects), output.Flush(p))
	case objects == 0:
		return ExitNothing, err
	}
	err = fmt.Errorf("%s failed after %s: %w", what, wording.Plural(objects, "object"), err)
	return ExitIncomplete, errors.Join(err, output.Flush(p))
}

// orInterrupted returns the error of a command, replaced by the reason why it was stopped, if it was: a request
// that failed for that reason is no error of its own.
func orInterrupted(ctx context.Context, err error) error {
	code, why := codeOf(err), whyStopped(ctx)
	switch {
	case ctx.Err() == nil, code != ExitInterrupted && !interrupted(err), code == why.Code: // which may say after how many objects
		return err
	}
	return why
}

// whyStopped is the error of a run that was stopped in the middle: by the limit of memory, or by the user.
func whyStopped(ctx context.Context) *ExitError {
	if exceeded := (*limit.MemoryError)(nil); errors.As(context.Cause(ctx), &exceeded) {
		return &ExitError{Code: ExitIncomplete, Err: exceeded}
	}
	return &ExitError{Code: ExitInterrupted, Err: apply.ErrInterrupted}
}

// abort ends the process in the middle of what it does, because it was stopped.
func abort(ctx context.Context, errOut io.Writer) {
	why := whyStopped(ctx)
	printed := make(chan struct{})
	go func() {
		defer close(printed)
		fmt.Fprintf(errOut, "error: %v\n", why)
	}()
	select {
	case <-printed:
	case <-time.After(100 * time.Millisecond): // standard error is not read
	}
	os.Exit(why.Code) //nolint:revive // what runs on would not return to main
}

// textOf returns the text of the error that a command ends with. A refused connection is
// reported in kubectl's words.
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

// codeOf returns the exit code for the error of a command. An error without a code comes
// from usage, connection or policies: nothing was done.
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

// interrupted reports whether an error says that the run was stopped: by the user, or by the limit of memory.
func interrupted(err error) bool {
	var exceeded *limit.MemoryError
	return errors.Is(err, apply.ErrInterrupted) || errors.Is(err, context.Canceled) || errors.As(err, &exceeded)
}

// worded returns an error, in kubectl's words where a server refuses connections.
func worded(err error) error {
	if utilnet.IsConnectionRefused(err) {
		return errors.New(textOf(err))
	}
	return err
}

// runner is a run on one cluster or on several.
type runner interface {
	Run(ctx context.Context) (int, error)
}

// run returns what runs a command, unless its flags are an error.
func run(ctx context.Context) func(runner, error) error {
	return func(o runner, err error) error {
		if err != nil {
			return err
		}
		return exit(o.Run(ctx))
	}
}

// printError prints the error of a run, and the permissions that it lacked.
func printError(errOut io.Writer, where string, err error) {
	var lacking rbac.Lacking
	lacking.Of(err)
	fmt.Fprintf(errOut, "error: %s%s\n", where, textOf(err))
	fmt.Fprint(errOut, lacking.Hint())
}
