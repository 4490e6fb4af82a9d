package library

import "fmt"

// limitError is a bound on a function that was reached.
type limitError struct {
	What string
	Max  int
}

// Error names the bound.
func (e *limitError) Error() string { return fmt.Sprintf("reached the limit of %d %s", e.Max, e.What) }
