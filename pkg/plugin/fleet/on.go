package fleet

import (
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/output"
)

// On returns an event of the run on one cluster as one of a run on several: what it is about is on that cluster.
func On(cluster string, e output.Event) output.Event {
	switch e := e.(type) {
	case output.Evaluated:
		c := *e.Change
		c.Subject.Cluster = cluster
		return output.Evaluated{Change: &c}
	case output.Written:
		r := *e.Result
		r.Key.Cluster = cluster
		if r.Status != nil {
			status := *r.Status
			status.Key.Cluster = cluster
			r.Status = &status
		}
		return output.Written{Result: &r}
	case output.Problem:
		return output.Problem{Err: &ClustersError{Clusters: []string{cluster}, Err: e.Err}}
	}
	return e
}
