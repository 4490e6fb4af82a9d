package location

import (
	"fmt"
)

func place(p Path) string {
	if len(p) == 0 {
		return "the object itself"
	}
	return p.String()
}

// mismatch is the error of a value of another type than the location takes it for: Gatekeeper's text, and the place.
func (w *walker) mismatch(want string, got any, depth int) error {
	return fmt.Errorf("mismatch between path entry (type: %s) and received object (type: %T). Path: %s (at %s)", want, got, w.path[depth], place(w.path[:depth]))
}
