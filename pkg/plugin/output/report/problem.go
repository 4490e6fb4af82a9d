package report

import (
	"cmp"
	"errors"
	"strings"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/redact"
)

// Troubled is a report that also tells what went wrong beside the objects: a
// policy that does not compile, objects that may not be listed. Without that, a
// run that saw half of what it should would look like one that found nothing.
type Troubled interface {
	// Trouble takes one such error, before Close.
	Trouble(error) error
}

// Problem is such an error. Its texts are masked and harmless lines.
type Problem struct {
	// Where is what the problem is about: "ClusterPolicy team-labels, rule add".
	Where string
	Text  string // what is wrong, Where and Origin included
	// Origin is where the policy was read, as it is; empty for other problems.
	Origin string
}

// ProblemOf describes an error.
func ProblemOf(err error, m *redact.Masker) Problem {
	p := Problem{Where: "kubectl mutate", Text: redact.EscapeLine(m.Text(err.Error()))}
	var broken *engine.CompileError
	if errors.As(err, &broken) {
		p.Origin = broken.Origin
		p.Where = redact.EscapeLine(cmp.Or(strings.TrimSuffix(broken.Policy+", rule "+broken.Rule, ", rule "), p.Where))
	}
	return p
}
