package cel

import (
	"context"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admission/v1"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
)

// slowAuthorizer allows everything, when it has been asked.
type slowAuthorizer struct{ asked func() }

func (a slowAuthorizer) Authorize(context.Context, engine.AccessRequest) (engine.AccessDecision, error) {
	a.asked()
	return engine.AccessDecision{Allowed: true}, nil
}

// The time in which a server answers does not count for the expression that asks.
func TestWaitingDoesNotCount(t *testing.T) {
	env, err := NewEnvironment(Options{Authorizer: true})
	if err != nil {
		t.Fatal(err)
	}
	scope := env.NewScope()
	x, err := scope.Condition(`authorizer.group('').resource('pods').namespace('n').check('get').allowed()`)
	if err != nil {
		t.Fatal(err)
	}
	ctx := engine.ForObject(t.Context())
	taken := engine.Taken(ctx)
	var before, after time.Duration
	slow := slowAuthorizer{func() {
		before = taken()
		time.Sleep(time.Millisecond)
		after = taken()
	}}
	in := Input{Object: map[string]any{}, Access: slow, Request: &admissionv1.AdmissionRequest{}}
	if holds, err := scope.Evaluate(ctx, in, MutationBudget()).Condition(x); err != nil || !holds {
		t.Fatal(holds, err)
	}
	if before != after {
		t.Errorf("%s count of the time that the server took", after-before)
	}
}
