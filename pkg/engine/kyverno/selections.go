package kyverno

import (
	"strings"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
)

// kindIndex finds the rules that may match a kind without asking each of them.
type kindIndex struct {
	byKind map[string]ruleSet // for each kind that some rule names plainly
	others ruleSet            // the rules that name a kind with wildcards
}

type ruleSet map[*rule]bool

// candidates are the rules that may match one kind.
type candidates struct {
	kind          string
	plain, others ruleSet
}

func (c candidates) has(r *rule) bool {
	return c.plain[r] || c.others[r] && r.match.MayBe(c.kind)
}

func newKindIndex(policies []*policy) kindIndex {
	x := kindIndex{byKind: map[string]ruleSet{}, others: ruleSet{}}
	for _, p := range policies {
		for _, r := range p.rules {
			x.add(r)
		}
	}
	return x
}

func (x kindIndex) add(r *rule) {
	for _, kind := range r.match.Kinds() {
		switch {
		case !kind.Plain():
			x.others[r] = true
		case x.byKind[kind.Kind] == nil:
			x.byKind[kind.Kind] = ruleSet{r: true}
		default:
			x.byKind[kind.Kind][r] = true
		}
	}
}

func (x kindIndex) rules(kind string) candidates {
	return candidates{kind, x.byKind[kind], x.others}
}

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
	return strings.Join([]string{s.Group, s.Version, s.Kind, s.Namespace, s.Name, s.Labels.String()}, "\x00")
}
