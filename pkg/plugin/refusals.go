package plugin

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/rbac"
)

// refusals are the permissions that reads of a run lacked, each once.
type refusals struct{ missing []string }

func (r *refusals) of(err error) {
	if m := rbac.Missing(err); m != "" && !slices.Contains(r.missing, m) {
		r.missing = append(r.missing, m)
	}
}

// in looks at what kept rules from an answer.
func (r *refusals) in(c *engine.Change) {
	for i := range c.Steps {
		if c.Steps[i].Outcome.Incomplete() {
			r.of(c.Steps[i].Err)
		}
	}
}

// tell names what is missing, and how to get it.
func (r *refusals) tell(out io.Writer) {
	if len(r.missing) > 0 {
		fmt.Fprintf(out, "hint: you may not %s; the command rbac, with the same policies, prints a role that allows all that they need\n",
			strings.Join(r.missing, ", "))
	}
}
