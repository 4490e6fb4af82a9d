package randomtext

import "fmt"

// PatternError says why no text can be drawn for a pattern. Err wraps the
// *syntax.Error of regexp/syntax where the pattern is not in POSIX's syntax.
type PatternError struct {
	Pattern string
	Err     error
}

// Error returns the pattern and the reason.
func (e *PatternError) Error() string { return fmt.Sprintf("pattern %#.200q: %v", e.Pattern, e.Err) }

// Unwrap returns the reason.
func (e *PatternError) Unwrap() error { return e.Err }
