package contextentry

import (
	"errors"
	"fmt"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/kyverno/variables"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/policydecode"
)

// apiCall is data that a request gets: from the API server, or from a web service
// (pkg/engine/apicall).
type apiCall struct {
	call     *call
	path     *dataPath
	fallback *variables.Template // nil when there is none
}

func decodeAPICall(n policydecode.Node) source {
	f := n.Fields()
	a := &apiCall{call: decodeCall(f), path: decodeDataPath(f.At("jmesPath")), fallback: variables.Decode(f.At("default"))}
	f.Done()
	return a
}

// load makes the request. The default stands in for a request that fails, not for
// one that cannot be put together, that this program may not make, or whose
// answer is not JSON or does not have what jmesPath looks for.
func (a *apiCall) load(from *Sources, s *variables.Scope) (any, error) {
	r, err := a.call.render(s)
	if err != nil {
		return nil, fmt.Errorf("failed to substitute variables: %w", err)
	}
	answer, err := r.answer(from)
	var unreadable *unreadableAnswer
	switch {
	case err == nil:
		return a.path.pick(s, answer)
	case a.fallback == nil || from.decisive(err) || errors.As(err, &unreadable):
		return nil, fmt.Errorf("failed to fetch data for APICall: %w", err)
	}
	value, err := a.fallback.Render(s)
	if err != nil {
		return nil, fmt.Errorf("default: %w", err)
	}
	return value, nil
}

func (a *apiCall) asks(Globals) []engine.Ask { return []engine.Ask{a.call.ask("")} }

func (a *apiCall) notIdempotent() string { return a.path.notIdempotent() }
