package gatekeeper

import (
	"fmt"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/gatekeeper/location"
)

// RefusedError is a mutator that fails on an object. Gatekeeper then refuses the
// whole object at admission, so that no mutator changes it.
type RefusedError struct{ Err error }

// Error is the reason in Gatekeeper's words, and what follows from it.
func (e *RefusedError) Error() string {
	return e.Err.Error() + "; Gatekeeper refuses such an object at admission"
}

// Unwrap gives the reason.
func (e *RefusedError) Unwrap() error { return e.Err }

// HeldBackError is why a mutator that matched changes nothing: another one fails
// on the same object.
type HeldBackError struct{ By string }

// Error names the mutator that fails.
func (e *HeldBackError) Error() string {
	return fmt.Sprintf("%s fails on this object, so that no mutator changes it", e.By)
}

// NotConvergingError is a set of mutators that still changes the object after as
// many rounds as Gatekeeper grants it.
type NotConvergingError struct {
	Rounds int
	// Limited tells that the bound is this program's and lower than Gatekeeper's.
	Limited bool
}

// Error is Gatekeeper's text, and the number of rounds.
func (e *NotConvergingError) Error() string {
	if e.Limited {
		return fmt.Sprintf("mutation not converging: the object still changes after %d rounds, the limit of this program", e.Rounds)
	}
	return fmt.Sprintf("mutation not converging: the object still changes after %d rounds", e.Rounds)
}

// SparedError is why no mutator reaches an object.
type SparedError struct{ Reason string }

// Error is the reason, in the words of Gatekeeper's webhook where it has any.
func (e *SparedError) Error() string { return e.Reason }

// EmptyListError is why a mutator of all elements of a list changes nothing.
type EmptyListError struct{ List location.Path }

// Error names the list.
func (e *EmptyListError) Error() string { return e.List.String() + " has no elements" }

// ExternalDataError is a value that only an external data provider, asked from
// inside the cluster, can tell.
type ExternalDataError struct {
	Provider, DataSource string
	Location             location.Path
}

// Error names the place and the provider.
func (e *ExternalDataError) Error() string {
	return fmt.Sprintf("%s: the value comes from the external data provider %q (dataSource %s), which can only be asked by Gatekeeper",
		e.Location, e.Provider, e.DataSource)
}

// KeptError is a label or an annotation that AssignMetadata, which only adds,
// left as it is.
type KeptError struct{ Value any }

// Error tells the value that stays.
func (e *KeptError) Error() string {
	return fmt.Sprintf("it is there already, as %q, and AssignMetadata only adds", fmt.Sprint(e.Value))
}

// Brief leaves out the value, so that many objects share the reason.
func (e *KeptError) Brief() string { return "it is there already, and AssignMetadata only adds" }
