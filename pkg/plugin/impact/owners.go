package impact

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/apply/request"
)

// owned forecasts, from the managedFields of the object before the change, whose
// fields the field manager us would take. The dry run of the write decides:
// request.Takeovers.
func owned(c *engine.Change, us string) []engine.Impact {
	var out []engine.Impact
	for _, e := range entriesOf(c.Before) {
		verdict := request.VerdictOf(metav1.ManagedFieldsEntry{Manager: e.manager, Operation: e.operation, Subresource: e.subresource}, us)
		if verdict == request.Silent {
			continue
		}
		fields := e.loses(c)
		if len(fields) == 0 {
			continue
		}
		owner := e.owner()
		i := engine.Impact{Code: engine.ImpactOwned, Owner: owner, Fields: fields, Text: owner + " had set " + names(fields)}
		if verdict == request.Contested {
			i.Text = owner + " owns " + names(fields) + ", so the write would be refused"
			i.Advice = "change it there, or take it over with --take-from=" + e.manager + " (the owner will then set it back, or fail)"
		}
		out = append(out, i)
	}
	return out
}

// loses are the fields of the entry that the change writes to. A new field has
// no owner yet, unless what holds it is owned as a whole; a place in a list has
// none at all.
func (e *entry) loses(c *engine.Change) []fieldpath.Path {
	var out []fieldpath.Path
	for i := range c.Fields {
		f := &c.Fields[i]
		if f.Kind == engine.Moved {
			continue
		}
		held := e.holds(c.Before.Object, f.Path)
		if held == nil || f.Kind == engine.Added && len(held) == len(f.Path) {
			continue
		}
		if len(out) == 0 || !out[len(out)-1].Equals(held) {
			out = append(out, held)
		}
	}
	return out
}

// coOwned returns list elements that their owner can no longer remove: a manager that applies
// a field of an element owns the element too, and an element with an owner stays.
func coOwned(c *engine.Change, us string) []engine.Impact {
	all := entriesOf(c.Before)
	held := map[string]fieldpath.Path{}
	for i := range all {
		if e := &all[i]; e.manager == us && e.operation == metav1.ManagedFieldsOperationApply {
			elements(e.fields, nil, func(p fieldpath.Path) { held[p.String()] = p })
		}
	}
	if len(held) == 0 {
		return nil
	}
	var out []engine.Impact
	for i := range all {
		e := &all[i]
		if e.manager == us || e.operation != metav1.ManagedFieldsOperationApply {
			continue
		}
		var shared []fieldpath.Path
		elements(e.fields, nil, func(p fieldpath.Path) {
			if _, ours := held[p.String()]; ours {
				shared = append(shared, p)
			}
		})
		if len(shared) > 0 {
			out = append(out, engine.Impact{
				Code: engine.ImpactCoOwned, Owner: e.owner(), Fields: shared,
				Text:   e.owner() + " applies " + names(shared) + " too, and cannot remove it while " + us + " owns a part of it",
				Advice: "undo the earlier run that wrote it, and change it at the owner's source",
			})
		}
	}
	return out
}

// wouldCoOwn returns list elements that will be hard to remove for a GitOps tool
// that has not applied them yet, by server-side apply, but may come to do so. Where
// it has, and where the change cannot be applied, the write is a JSON patch, which
// leaves no such trace.
func wouldCoOwn(c *engine.Change, us string) []engine.Impact {
	gitOps := func(m Manager) bool { return m.Tool == ArgoCD || m.Tool == Flux }
	managers := Managed(c.Before)
	i := slices.IndexFunc(managers, gitOps)
	through := elementsAbove(c)
	if i < 0 || len(through) == 0 {
		return nil
	}
	for _, e := range entriesOf(c.Before) {
		if e.manager != us && e.operation == metav1.ManagedFieldsOperationApply && slices.ContainsFunc(through, e.has) {
			return nil
		}
	}
	tool := managers[i]
	return []engine.Impact{{
		Code: engine.ImpactCoOwned, Owner: tool.String(), Fields: through,
		Brief:  us + " would own a part of " + names(through) + ", so " + string(tool.Tool) + " could not remove it any more once it uses server-side apply",
		Text:   us + " would own a part of " + names(through) + ", so " + tool.String() + " could not remove it any more once it uses server-side apply",
		Advice: "change " + tool.Source + " instead",
	}}
}

// elementsAbove are the keyed list elements in which fields change; none where
// something is removed or moved, which server-side apply cannot express.
func elementsAbove(c *engine.Change) []fieldpath.Path {
	var out []fieldpath.Path
	seen := map[string]bool{}
	for i := range c.Fields {
		f := &c.Fields[i]
		if f.Kind == engine.Removed || f.Kind == engine.Moved {
			return nil
		}
		for n := 1; n < len(f.Path); n++ {
			p := f.Path[:n:n]
			if p[n-1].Key != nil && !seen[p.String()] {
				seen[p.String()] = true
				out = append(out, p)
			}
		}
	}
	return out
}
