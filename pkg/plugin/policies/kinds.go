package policies

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/selector"
)

// texts writes selections for people, each once, and all kinds in one way, as
// GROUP/KIND: rules of Kyverno leave out groups, those of admission name resources.
// An unknown kind stays as the policy has it, and is called so.
func (b *Builder) texts(selections []engine.Selection) []string {
	out := []string{}
	for _, s := range selections {
		texts := []string{s.String() + " (unknown)"}
		if !b.unknown(s) {
			texts = nil
			for _, named := range b.named(s) {
				texts = append(texts, named.String())
			}
		}
		for _, t := range texts {
			if !slices.Contains(out, t) {
				out = append(out, t)
			}
		}
	}
	return out
}

// named is a selection by its kinds.
func (b *Builder) named(s engine.Selection) []engine.Selection {
	var out []engine.Selection
	for _, gk := range b.kinds(s) {
		s.Group, s.Kind, s.Resource = gk.Group, gk.Kind, ""
		out = append(out, s)
	}
	if len(out) > 0 {
		return out
	}
	if s.Resource == "*" && s.Kind == "*" {
		s.Resource = ""
	}
	return []engine.Selection{s}
}

// unknown reports whether a selection names a kind that there is not.
func (b *Builder) unknown(s engine.Selection) bool {
	if b.CheckKind == nil {
		return false
	}
	name := engine.KindName{Groups: []string{s.Group}, Kind: s.Kind, Subresource: s.Subresource}
	if s.Resource != "" {
		name.Kind, name.Resource = "", s.Resource
	}
	if s.Version != "" {
		name.Versions = []string{s.Version}
	}
	return b.CheckKind(name) != nil
}

// kinds are those that a selection is for, where it names them plainly: by a
// resource, or by a kind of any group.
func (b *Builder) kinds(s engine.Selection) []schema.GroupKind {
	wanted := schema.GroupVersionResource{Group: s.Group, Resource: s.Resource}
	if s.Resource == "" {
		wanted.Resource = strings.ToLower(s.Kind) // the singular name of most resources
	}
	if wanted.Group == "*" {
		wanted.Group = ""
	}
	plain := wanted.Resource != "" && !selector.HasWildcard(wanted.Resource+wanted.Group)
	if b.Mapper == nil || !plain || s.Resource == "" && s.Group != "*" {
		return nil
	}
	found, _ := b.Mapper.KindsFor(wanted) // an error says that they are not served, or not known without a cluster
	var out []schema.GroupKind
	for _, gvk := range found {
		// No server has kinds of the group extensions any more: Kubernetes 1.22.
		fits := selector.MatchWildcard(s.Group, gvk.Group) && selector.MatchWildcard(s.Kind, gvk.Kind) && gvk.Group != "extensions"
		if fits && !slices.Contains(out, gvk.GroupKind()) {
			out = append(out, gvk.GroupKind())
		}
	}
	return out
}
