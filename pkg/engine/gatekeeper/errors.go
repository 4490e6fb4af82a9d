package gatekeeper

import "fmt"

// refused is the error of a mutator that fails on an object, in Gatekeeper's words, and its consequence:
// Gatekeeper refuses the whole object at admission, so no mutator changes it.
func refused(err error) error {
	return fmt.Errorf("%w; Gatekeeper refuses such an object at admission", err)
}

// keptError is a label or an annotation that AssignMetadata, which only adds, did not change.
type keptError struct{ Value any }

// Error quotes the existing value.
func (e *keptError) Error() string {
	return fmt.Sprintf("it is there already, as %q, and AssignMetadata only adds", quoted(e.Value))
}

// Brief omits the value, so that objects can share the reason.
func (e *keptError) Brief() string { return "it is there already, and AssignMetadata only adds" }
