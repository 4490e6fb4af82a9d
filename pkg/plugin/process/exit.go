package process

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
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/output"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/permission"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/wording"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/write"
)

// The exit codes. Preview follows kubectl diff: 1 means "something would
// change", and everything above 1 is an error. An incomplete preview is never 0
// or 1, because "no changes" must be reliable.
const (
	ExitOK      = 0 // preview: nothing would change; apply-existing: all applied, or nothing to do
	ExitChanges = 1 // preview: something would change
	// preview: there was nothing to evaluate, or nothing could be; apply-existing: nothing was written
	ExitNothing = 2
	// preview: some objects or policies were not evaluated; apply-existing: some written and some not
	ExitIncomplete = 3
	// ExitInterrupted is the code that a shell gives a program that Ctrl-C ended.
	ExitInterrupted = 130
)

// Error carries an exit code to Run, which prints Err. A nil Err prints nothing,
// because the command has printed everything.
type Error struct {
	Code int
	Err  error
}

// Error returns the message of Err.
func (e *Error) Error() string {
	if e.Err == nil {
		return fmt.Sprintf("exit code %d", e.Code)
	}
	return e.Err.Error()
}

// Unwrap returns Err.
func (e *Error) Unwrap() error { return e.Err }

// Exit returns the error that ends a command with a code; nil for code 0 without an error.
func Exit(code int, err error) error {
	if code == ExitOK && err == nil {
		return nil
	}
	return &Error{Code: code, Err: err}
}

// WrittenCode returns the exit code of a run that writes: 0 if all went well, otherwise by whether anything
// was written. Objects that were skipped as the user was shown do not count.
func WrittenCode(t write.Tally, incomplete bool) int {
	switch {
	case t.Failed+t.NotTried == 0 && !incomplete:
		return ExitOK
	case t.Written == 0:
		return ExitNothing
	}
	return ExitIncomplete
}

// InterruptedAfter returns the error of a run that the user stopped after a number of evaluated objects.
func InterruptedAfter(objects int) error {
	if objects == 0 {
		return write.ErrInterrupted
	}
	return fmt.Errorf("%w after %s", write.ErrInterrupted, wording.Plural(objects, "object"))
}

// Ended flushes the printer of a run that failed after a number of objects, and returns its exit code and
// error.
func Ended(err error, what string, objects int, p output.Printer) (int, error) {
	switch {
	case Interrupted(err):
		return ExitInterrupted, errors.Join(InterruptedAfter(objects), output.Flush(p))
	case objects == 0:
		return ExitNothing, err
	}
	err = fmt.Errorf("%s failed after %s: %w", what, wording.Plural(objects, "object"), err)
	return ExitIncomplete, errors.Join(err, output.Flush(p))
}

// OrInterrupted returns the error of a command, or why the command was stopped: a request that failed
// because of that is not an error of its own. Only a command that writes has interrupts.
func OrInterrupted(ctx context.Context, i *write.Interrupts, err error) error {
	code, why := CodeOf(err), whyStopped(ctx, i)
	switch {
	case ctx.Err() == nil, code != ExitInterrupted && !Interrupted(err), code == why.Code:
		// which may say after how many objects
		return err
	}
	return why
}

// whyStopped returns the error of a run that the memory limit or the user stopped.
func whyStopped(ctx context.Context, i *write.Interrupts) *Error {
	why := &Error{Code: ExitInterrupted, Err: write.ErrInterrupted}
	if exceeded := (*limit.MemoryError)(nil); errors.As(context.Cause(ctx), &exceeded) {
		why = &Error{Code: ExitIncomplete, Err: exceeded}
	}
	if i.BeforeWrites() {
		why.Err = write.NothingWritten(why.Err)
	}
	return why
}

// Abort prints why the run was stopped and ends the process.
func Abort(ctx context.Context, i *write.Interrupts, errOut io.Writer) {
	why := whyStopped(ctx, i)
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

// Message returns the message of the error that a command ends with; for a refused connection, kubectl's.
func Message(err error) string {
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

// CodeOf returns the exit code for the error of a command. An error without a code comes from usage,
// connection or policies: nothing was done.
func CodeOf(err error) int {
	if err == nil {
		return ExitOK
	}
	var e *Error
	if errors.As(err, &e) {
		return e.Code
	}
	return ExitNothing
}

// Interrupted reports whether the user or the memory limit stopped the run.
func Interrupted(err error) bool {
	var exceeded *limit.MemoryError
	return errors.Is(err, write.ErrInterrupted) || errors.Is(err, context.Canceled) || errors.As(err, &exceeded)
}

// Runner is a run on one or several clusters.
type Runner interface {
	Run(ctx context.Context) (int, error)
}

// RunE returns a function that runs a command, unless its flags are an error.
func RunE(ctx context.Context) func(Runner, error) error {
	return func(o Runner, err error) error {
		if err != nil {
			return err
		}
		return Exit(o.Run(ctx))
	}
}

// PrintError prints the error of a run, and the permissions that it lacked.
func PrintError(errOut io.Writer, where string, err error) {
	var lacking permission.Lacking
	lacking.Of(err)
	fmt.Fprintf(errOut, "error: %s%s\n", where, Message(err))
	fmt.Fprint(errOut, lacking.Hint())
}
