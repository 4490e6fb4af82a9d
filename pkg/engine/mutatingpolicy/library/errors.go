package library

import "fmt"

// LimitError is a bound on a function that was reached.
type LimitError struct {
	What string
	Max  int
}

// Error names the bound.
func (e *LimitError) Error() string { return fmt.Sprintf("reached the limit of %d %s", e.Max, e.What) }
