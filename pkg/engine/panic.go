package engine

import (
	"errors"
	"fmt"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/limit"
)

// PanicError is a defect of this program, or of a library below it, exposed by an object or a policy.
type PanicError struct {
	Value any
	Place string // the line of source that panicked
}

// Error asks for a report, with the details to find the defect.
func (e *PanicError) Error() string {
	return fmt.Sprintf("internal error, please report it: %v (at %s)", e.Value, e.Place)
}

// OfThisProgram reports whether an evaluation failed at a limit or a defect of this program, which no server
// has. The effect of the rule on a server is unknown, whatever its failurePolicy.
func OfThisProgram(err error) bool {
	var over *limit.Error
	var panicked *PanicError
	return errors.As(err, &over) || errors.As(err, &panicked)
}

// Guard calls a function, and returns a panic in it as a *PanicError.
func Guard(run func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = &PanicError{Value: p, Place: panicPlace()}
		}
	}()
	return run()
}

// panicPlace returns the line of source that panicked, to be called while recovering.
func panicPlace() string {
	callers := make([]uintptr, 32)
	// behind this and the deferred function
	frames := runtime.CallersFrames(callers[:runtime.Callers(3, callers)])
	for {
		f, more := frames.Next()
		if !strings.HasPrefix(f.Function, "runtime.") {
			return fmt.Sprintf("%s:%d", filepath.Base(f.File), f.Line)
		}
		if !more {
			return "unknown"
		}
	}
}
