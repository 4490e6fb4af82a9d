// Package dialects lists the policy languages in admission order; only it imports them all.
package dialects

import (
	"context"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/admissionpolicy"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/gatekeeper"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/kyverno"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/kyverno/jmespath"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/limit"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/mutatingpolicy"
)

// All lists the dialects in the order in which an API server consults them: MutatingAdmissionPolicies before
// webhooks, webhooks by the name of their configuration (Gatekeeper's default name sorts before Kyverno's),
// and Kyverno's ClusterPolicies before its MutatingPolicies.
func All() []engine.Dialect {
	return []engine.Dialect{admissionpolicy.New(), gatekeeper.New(), kyverno.New(), mutatingpolicy.New(project)}
}

// Expanding is All for a run that also evaluates objects to be created: Gatekeeper's mutators with
// ExpansionTemplates.
func Expanding() []engine.Dialect {
	return []engine.Dialect{
		admissionpolicy.New(), gatekeeper.NewExpander(), kyverno.New(), mutatingpolicy.New(project),
	}
}

// project applies JMESPath for the CEL dialect, which shares GlobalContextEntries with Kyverno's
// ClusterPolicies.
func project(w *engine.World, expression string, data any) (any, error) {
	compiled, err := jmespath.Compile(expression)
	if err != nil {
		return nil, err
	}
	ctx, done := limit.Rule(context.Background(), compiled)
	defer done()
	return compiled.Search(jmespath.New(w.Now, w.Seed, limit.ClockOf(ctx)), data)
}

// OfKyverno reports whether Kyverno evaluates the policies of a language.
func OfKyverno(d engine.Dialect) bool {
	return d.Name() == kyverno.Name || d.Name() == mutatingpolicy.Name
}
