package library

import "fmt"

// UnsupportedError is something that an expression asks for and that this
// program cannot, or may not, do.
type UnsupportedError struct{ Reason string }

// Error is the reason, with the flag that would help where there is one.
func (e *UnsupportedError) Error() string { return e.Reason }

// LimitError is a bound on a function that was reached.
type LimitError struct {
	What string
	Max  int
}

// Error names the bound.
func (e *LimitError) Error() string { return fmt.Sprintf("reached the limit of %d %s", e.Max, e.What) }
