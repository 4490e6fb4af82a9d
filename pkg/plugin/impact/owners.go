package impact

import (
	"context"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/json"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/diff"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/write/request"
)

// ownedFields predicts, from the managedFields of the object before the change, whose fields a write would
// take. The dry run of the write decides: request.Takeovers.
func ownedFields(c *engine.Change, owners []request.Owner) []engine.Impact {
	var out []engine.Impact
	for _, o := range owners {
		fields := fieldsLostBy(c, o.FieldsV1)
		if o.Verdict == request.Silent || len(fields) == 0 {
			continue
		}
		i := engine.Impact{Code: engine.ImpactOwned, Owner: o.Owner(), Fields: fields, Text: o.Owner() +
			" had set " + pathNames(fields)}
		if o.Verdict == request.Contested {
			i.Text = "the write would be refused: " + o.Owner() + " owns " + pathNames(fields)
			i.Advice = "change it there, or take it over with --take-from=" + o.Manager + " (the owner will then set it back, or fail)"
		}
		out = append(out, i)
	}
	return out
}

// fieldsLostBy returns the fields of an owner that the change writes to. A new field has no owner, unless
// its parent is owned as a whole; the position of a list element never has.
func fieldsLostBy(c *engine.Change, owns map[string]any) []fieldpath.Path {
	var out []fieldpath.Path
	for i := range c.Fields {
		f := &c.Fields[i]
		if f.Kind == engine.Moved {
			continue
		}
		held := heldPath(owns, c.Before.Object, f.Path)
		if held == nil || f.Kind == engine.Added && len(held) == len(f.Path) {
			continue
		}
		if len(out) == 0 || !out[len(out)-1].Equals(held) {
			out = append(out, held)
		}
	}
	return out
}

// heldPath returns what an owner has of a path in an object: the path itself, even if only a part of it, or
// the leaf above it that is owned as a whole; nil for neither. A leaf that was an empty map when it was set
// contains nothing: what others put into it is theirs.
func heldPath(fieldsV1 map[string]any, object map[string]any, p fieldpath.Path) fieldpath.Path {
	for n := range p {
		var ok bool
		if fieldsV1, ok = fieldsBelow(fieldsV1, p[n]); !ok {
			return nil
		}
		if n == len(p)-1 || hasChildren(fieldsV1) {
			continue
		}
		leaf := p[: n+1 : n+1]
		v, ok := diff.Lookup(object, leaf)
		if m, isMap := v.(map[string]any); !ok || isMap && len(m) == 0 {
			return nil
		}
		return leaf
	}
	return p
}

// fieldsBelow returns a child in FieldsV1, in which an owned field is empty or has ".".
func fieldsBelow(fieldsV1 map[string]any, e fieldpath.PathElement) (map[string]any, bool) {
	name, err := fieldpath.SerializePathElement(e)
	v, ok := fieldsV1[name].(map[string]any)
	return v, ok && err == nil
}

func hasChildren(fieldsV1 map[string]any) bool {
	_, itself := fieldsV1["."]
	return len(fieldsV1) > 1 || len(fieldsV1) == 1 && !itself
}

func ownsElement(fieldsV1 map[string]any, p fieldpath.Path) bool {
	ok := true
	for n := 0; ok && n < len(p); n++ {
		fieldsV1, ok = fieldsBelow(fieldsV1, p[n])
	}
	_, itself := fieldsV1["."]
	return ok && (itself || len(fieldsV1) == 0)
}

// coOwned returns list elements that their owner can no longer remove: a manager that applies a field of an
// element owns the element too, and an element with an owner stays.
func coOwned(owners []request.Owner, us string) []engine.Impact {
	ours := fieldpath.NewSet()
	for _, o := range owners {
		if o.Manager == us && o.Operation == metav1.ManagedFieldsOperationApply {
			ours = ours.Union(o.Set())
		}
	}
	if ours.Empty() {
		return nil
	}
	var out []engine.Impact
	for _, o := range owners {
		if o.Manager == us || o.Operation != metav1.ManagedFieldsOperationApply {
			continue
		}
		var shared []fieldpath.Path
		for p := range o.Set().Intersection(ours).All() {
			if p[len(p)-1].Key != nil {
				shared = append(shared, p.Copy())
			}
		}
		if len(shared) > 0 {
			out = append(out, engine.Impact{
				Code: engine.ImpactCoOwned, Owner: o.Owner(), Fields: shared,
				Text: o.Owner() + " cannot remove what it applies while " + us + " owns a part of it: " +
					pathNames(shared),
				Advice: "undo the earlier run that wrote it, and change it at the owner's source",
			})
		}
	}
	return out
}

// wouldCoOwn returns list elements that will be hard to remove for a GitOps tool that may change to
// server-side apply. If it already uses it, or the change cannot be applied, the write is a JSON patch,
// which owns no elements.
func wouldCoOwn(c *engine.Change, owners []request.Owner, us string) []engine.Impact {
	gitOps := func(m Manager) bool { return m.Tool == ArgoCD || m.Tool == Flux }
	managers := Managed(c.Before)
	i := slices.IndexFunc(managers, gitOps)
	through := elementsAbove(c)
	if i < 0 || len(through) == 0 {
		return nil
	}
	for _, o := range owners {
		if o.Manager != us && o.Operation == metav1.ManagedFieldsOperationApply &&
			slices.ContainsFunc(through, func(p fieldpath.Path) bool { return ownsElement(o.FieldsV1, p) }) {
			return nil
		}
	}
	tool := managers[i]
	coOwned := " could not remove it any more once it uses server-side apply: " + us + " would own a part of " + pathNames(through)
	return []engine.Impact{{
		Code: engine.ImpactCoOwned, Owner: tool.String(), Fields: through,
		Brief:  string(tool.Tool) + coOwned,
		Text:   tool.String() + coOwned,
		Advice: "change " + tool.Source + " instead",
	}}
}

// elementsAbove returns the keyed list elements in which fields change; nil if something is removed or
// moved, which server-side apply cannot express.
func elementsAbove(c *engine.Change) []fieldpath.Path {
	var out []fieldpath.Path
	for i := range c.Fields {
		f := &c.Fields[i]
		if f.Kind == engine.Removed || f.Kind == engine.Moved {
			return nil
		}
		for n := 1; n < len(f.Path); n++ {
			if p := f.Path[:n:n]; p[n-1].Key != nil && !slices.ContainsFunc(out, p.Equals) {
				out = append(out, p)
			}
		}
	}
	return out
}

// applied returns the fields that kubectl's client-side apply will set back, by the manifest in its
// annotation: https://kubernetes.io/docs/tasks/manage-kubernetes-objects/declarative-config/. It writes the
// values of its manifest that differ from the object.
func (r *Reviewer) applied(ctx context.Context, c *engine.Change) []engine.Impact {
	// a hidden value always differs from the manifest, so Secrets have no impact
	after := engine.HideObject(c.ToShow().After)
	manifest := lastApplied(c)
	if manifest == nil || after == nil {
		return nil
	}
	gvk := c.Subject.GroupVersionKind()
	// kubectl merges lists of known kinds by the keys of their elements, and replaces any other list as a whole.
	merges := scheme.Scheme.Recognizes(gvk)
	var back []fieldpath.Path
	for _, f := range diff.Compare(manifest, after.Object, diff.TypeOf(ctx, r.Reader, gvk)) {
		list := slices.IndexFunc(f.Path,
			func(e fieldpath.PathElement) bool { return e.Index != nil || !merges && e.FieldName == nil })
		switch {
		case list >= 0:
			back = append(back, f.Path[:list])
		case f.Kind == engine.Replaced, f.Kind == engine.Removed:
			back = append(back, f.Path)
		}
	}
	var fields []fieldpath.Path
	for i := range c.Fields {
		p := c.Fields[i].Path
		for _, q := range back {
			if n := min(len(p), len(q)); p[:n].Equals(q[:n]) {
				if len(fields) == 0 || !fields[len(fields)-1].Equals(p[:n]) {
					fields = append(fields, p[:n:n])
				}
				break
			}
		}
	}
	if len(fields) == 0 {
		return nil
	}
	return []engine.Impact{{
		Code: engine.ImpactApplied, Fields: fields,
		Text:   "kubectl apply will set it back: its manifest has " + pathNames(fields),
		Brief:  "kubectl apply will set it back: its manifest has " + patterns(fields),
		Advice: "change the manifest too",
	}}
}

// lastApplied returns the manifest of the last client-side apply before the change; nil if it cannot be
// read.
func lastApplied(c *engine.Change) map[string]any {
	text := valueOf[string](c.Before.Object, "metadata", "annotations", engine.LastApplied)
	var manifest map[string]any
	if text == "" || json.Unmarshal([]byte(text), &manifest) != nil {
		return nil
	}
	if engine.IsSecret(c.Before) { // the server moves stringData to data
		data := valueOf[map[string]any](manifest, "data")
		texts := valueOf[map[string]any](manifest, "stringData")
		for name, value := range texts {
			if data == nil {
				data = map[string]any{}
				manifest["data"] = data
			}
			data[name] = value
		}
	}
	return manifest
}
