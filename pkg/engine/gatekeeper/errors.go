package gatekeeper

import "fmt"

// refused is the error of a mutator that fails on an object: in Gatekeeper's words, and with what follows
// from it. Gatekeeper then refuses the whole object at admission, so that no mutator changes it.
func refused(err error) error {
	return fmt.Errorf("%w; Gatekeeper refuses such an object at admission", err)
}

// keptError is a label or an annotation that AssignMetadata, which only adds,
// left as it is.
type keptError struct{ Value any }

// Error quotes the value that stays.
func (e *keptError) Error() string {
	return fmt.Sprintf("it is there already, as %q, and AssignMetadata only adds", quoted(e.Value))
}

// Brief leaves out the value, so that many objects share the reason.
func (e *keptError) Brief() string { return "it is there already, and AssignMetadata only adds" }
