package kyverno

import (
	"strings"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
)

// selections returns what the rules match, without duplicates. Kinds come from the
// whole block, so that nothing that matches is missing; namespace, name and labels
// narrow it where a server can filter by them.
func selections(policies []*policy) []engine.Selection {
	var out []engine.Selection
	seen := map[string]bool{}
	for _, p := range policies {
		for _, r := range p.rules {
			for _, s := range r.match.Selections(p.namespace) {
				if id := selectionID(s); !seen[id] {
					seen[id] = true
					out = append(out, s)
				}
			}
		}
	}
	return out
}

func selectionID(s engine.Selection) string {
	return strings.Join([]string{s.Group, s.Version, s.Kind, s.Namespace, s.Name, engine.LabelsID(s.Labels)}, "\x00")
}
