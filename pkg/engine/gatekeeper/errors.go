package gatekeeper

import (
	"fmt"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/gatekeeper/location"
)

// refusedError is a mutator that fails on an object. Gatekeeper then refuses the
// whole object at admission, so that no mutator changes it.
type refusedError struct{ Err error }

// Error is the reason in Gatekeeper's words, and what follows from it.
func (e *refusedError) Error() string {
	return e.Err.Error() + "; Gatekeeper refuses such an object at admission"
}

// Unwrap returns the reason.
func (e *refusedError) Unwrap() error { return e.Err }

// notConvergingError is a set of mutators that still changes the object after as
// many rounds as Gatekeeper grants it.
type notConvergingError struct {
	Rounds int
	// Limited reports that the bound is this program's and lower than Gatekeeper's.
	Limited bool
}

// Error is Gatekeeper's text, and the number of rounds.
func (e *notConvergingError) Error() string {
	if e.Limited {
		return fmt.Sprintf("mutation not converging: the object still changes after %d rounds, the limit of this program", e.Rounds)
	}
	return fmt.Sprintf("mutation not converging: the object still changes after %d rounds", e.Rounds)
}

// excludedError is why no mutator sees an object.
type excludedError struct{ Reason string }

// Error is the reason, in the words of Gatekeeper's webhook where it has any.
func (e *excludedError) Error() string { return e.Reason }

// emptyListError is why a mutator of all elements of a list changes nothing.
type emptyListError struct{ List location.Path }

// Error names the list.
func (e *emptyListError) Error() string { return e.List.String() + " has no elements" }

// misspeltError is why there can be no list where a mutator looks for its elements.
type misspeltError struct{ Found engine.InvalidField }

// Error names the field that was probably meant.
func (e *misspeltError) Error() string {
	text := fmt.Sprintf("spec.location finds nothing: %s %s", engine.PathString(e.Found.Path), e.Found.Why)
	if e.Found.Meant != "" {
		text += "; did you mean " + e.Found.Meant + "?"
	}
	return text
}

// externalDataError is a value that only an external data provider, asked from
// inside the cluster, knows.
type externalDataError struct {
	Provider, DataSource string
	Location             location.Path
}

// Error names the place and the provider.
func (e *externalDataError) Error() string {
	return fmt.Sprintf("%s: the value comes from the external data provider %q (dataSource %s), which can only be asked by Gatekeeper",
		e.Location, e.Provider, e.DataSource)
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
