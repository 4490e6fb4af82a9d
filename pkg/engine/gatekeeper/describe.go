package gatekeeper

import "github.com/kubectl-mutate/kubectl-mutate/pkg/engine"

func (m *mutator) describe() engine.Description {
	d := engine.Description{
		Rule: m.ref, Matches: m.selections(), Existing: engine.OnAdmission,
		Where: append(m.criteria.Where(), m.tests.Texts()...), Operations: m.operations(), Changes: []string{m.path.String()},
	}
	if from, ok := m.action.(interface{ Provider() string }); ok && from.Provider() != "" {
		d.Asks = []engine.Ask{{Of: engine.AskProvider, What: from.Provider()}}
	}
	return d
}

// operations are those that every entry of applyTo is limited to.
func (m *mutator) operations() []engine.Operation {
	var out []engine.Operation
	for _, operation := range []engine.Operation{engine.OperationCreate, engine.OperationUpdate} {
		for i := range m.criteria.ApplyTo {
			if m.criteria.ApplyTo[i].Does(operation) {
				out = append(out, operation)
				break
			}
		}
	}
	if len(out) == 2 {
		return nil
	}
	return out
}
