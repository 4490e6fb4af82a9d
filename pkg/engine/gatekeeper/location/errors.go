package location

import (
	"fmt"
)

// typeError is a value of another type than the location takes it for.
// Gatekeeper refuses such an object at admission.
type typeError struct {
	Want string // "object" or "List"
	Got  any    // the value
	Node Node   // that met it
	At   Path   // where the value is; empty for the object itself
}

// Error is Gatekeeper's text, and the place.
func (e *typeError) Error() string {
	return fmt.Sprintf("mismatch between path entry (type: %s) and received object (type: %T). Path: %s (at %s)", e.Want, e.Got, e.Node, place(e.At))
}

// castError is an element that is no object, in a list of which one is to be
// replaced.
type castError struct {
	Got any
	At  Path // the list
}

// Error is Gatekeeper's text, and the place.
func (e *castError) Error() string {
	return fmt.Sprintf("cast error, unable to case %T to map[string]interface{} (at %s)", e.Got, place(e.At))
}

func place(p Path) string {
	if len(p) == 0 {
		return "the object itself"
	}
	return p.String()
}

func (w *walker) mismatch(want string, got any, depth int) error {
	return &typeError{Want: want, Got: got, Node: w.path[depth], At: w.path[:depth]}
}
