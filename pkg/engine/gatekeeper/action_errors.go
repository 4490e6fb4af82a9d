package gatekeeper

import (
	"fmt"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/gatekeeper/location"
)

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
