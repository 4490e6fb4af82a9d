package legacy

import "fmt"

// AnchorError is an anchor that overlays do not have.
type AnchorError struct {
	Path   string
	Anchor string // such as "X()"
}

// Error names the anchor and the ones that may stand there.
func (e *AnchorError) Error() string {
	return fmt.Sprintf("%s: the anchor %s is not supported in an overlay: use () or +()", e.Path, e.Anchor)
}

// KindError is a list that holds mappings in the overlay and something else in the
// object, or the other way round.
type KindError struct{ Path string }

// Error names the list.
func (e *KindError) Error() string {
	return fmt.Sprintf("%s: the elements of the overlay's list are of another type than those that are there", e.Path)
}
