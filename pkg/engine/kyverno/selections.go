package kyverno

import (
	"strings"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
)

// kindIndex finds the rules that may match a kind without asking each of them.
type kindIndex struct {
	byKind map[string]ruleSet // for each kind that some rule names plainly
	others ruleSet            // the rules that may match any other kind
}

type ruleSet map[*rule]bool

func (s ruleSet) has(r *rule) bool { return s[r] }

func newKindIndex(policies []*policy) kindIndex {
	x := kindIndex{byKind: map[string]ruleSet{}, others: ruleSet{}}
	var all []*rule
	for _, p := range policies {
		all = append(all, p.rules...)
	}
	for _, r := range all {
		for _, kind := range r.match.Kinds() {
			if kind.Plain() {
				x.byKind[kind.Kind] = ruleSet{}
			} else {
				x.others[r] = true
			}
		}
	}
	for kind, set := range x.byKind {
		for _, r := range all {
			if r.match.MayBe(kind) {
				set[r] = true
			}
		}
	}
	return x
}

func (x kindIndex) rules(kind string) ruleSet {
	if set, ok := x.byKind[kind]; ok {
		return set
	}
	return x.others
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
