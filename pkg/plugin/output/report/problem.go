package report

import (
	"cmp"
	"errors"
	"strings"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
)

// Problem is an error beside the objects. Its texts are escaped.
type Problem struct {
	// Where is what the problem is about: "ClusterPolicy team-labels, rule add".
	Where string
	Text  string // what is wrong, Where and Origin included
	// Origin is where the policy was read, and Place the same for programs; both are
	// empty for other problems.
	Origin string
	Place  Place
}

// ProblemOf describes an error.
func ProblemOf(err error) Problem {
	p := Problem{Where: "kubectl mutate", Text: err.Error()}
	var broken *engine.CompileError
	if errors.As(err, &broken) {
		p.Origin, p.Place = broken.Place(), PlaceOf(broken.Place())
		p.Where = cmp.Or(strings.TrimSuffix(broken.Policy+", rule "+broken.Rule, ", rule "), p.Where)
	}
	escape(&p.Where, &p.Text, &p.Origin)
	return p
}
