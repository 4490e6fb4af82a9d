package preview

import (
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/rbac"
)

// lackingIn adds the permissions that kept rules from an answer on an object.
func lackingIn(c *engine.Change, lacking *rbac.Lacking) {
	steps := c.ToShow().Steps
	for i := range steps {
		if steps[i].Outcome.Incomplete() {
			lacking.Of(steps[i].Err)
		}
	}
}
