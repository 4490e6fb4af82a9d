package gatekeeper

import (
	"errors"
	"fmt"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/gatekeeper/location"
)

// refused is the error of a mutator that fails on an object: in Gatekeeper's words, and with what follows from it. Gatekeeper
// then refuses the whole object at admission, so that no mutator changes it.
func refused(err error) error {
	return fmt.Errorf("%w; Gatekeeper refuses such an object at admission", err)
}

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

// misspelt is why there can be no list where a mutator looks for its elements.
func misspelt(found engine.InvalidField) error {
	text := fmt.Sprintf("spec.location finds nothing: %s %s", engine.PathString(found.Path), found.Why)
	if found.Meant != "" {
		text += "; did you mean " + found.Meant + "?"
	}
	return errors.New(text)
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
