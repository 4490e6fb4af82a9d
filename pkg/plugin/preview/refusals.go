package preview

import (
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/rbac"
)

// lackingIn adds the permissions that kept rules from an answer on an object.
func lackingIn(c *engine.Change, lacking *rbac.Lacking) {
	for i := range c.Steps {
		if c.Steps[i].Outcome.Incomplete() {
			lacking.Of(c.Steps[i].Err)
		}
	}
}
