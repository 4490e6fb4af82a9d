package impact

import (
	"context"
	"slices"

	"k8s.io/apimachinery/pkg/util/json"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/diff"
)

// applied returns which fields kubectl's client-side apply will set back, by the manifest that it left in an annotation:
// https://kubernetes.io/docs/tasks/manage-kubernetes-objects/declarative-config/. It writes what its manifest has, where the
// object has something else.
func (r *Reviewer) applied(ctx context.Context, c *engine.Change) []engine.Impact {
	after := engine.HideObject(c.ToShow().After) // a secret value is never as the manifest has it, so that an impact says nothing of it
	manifest := lastApplied(c)
	if manifest == nil || after == nil {
		return nil
	}
	gvk := c.Subject.GroupVersionKind()
	// kubectl merges lists of the kinds that it knows by the keys of their elements, and replaces any other list as a whole.
	merges := scheme.Scheme.Recognizes(gvk)
	var back []fieldpath.Path
	for _, f := range diff.Compare(manifest, after.Object, diff.TypeOf(ctx, r.Reader, gvk)) {
		list := slices.IndexFunc(f.Path, func(e fieldpath.PathElement) bool { return e.Index != nil || !merges && e.FieldName == nil })
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
		Text:   "kubectl apply has " + names(fields) + " in its manifest and will set it back",
		Brief:  "kubectl apply has " + patterns(fields) + " in its manifest and will set it back",
		Advice: "change the manifest too",
	}}
}

// lastApplied is the manifest of the last client-side apply to the object before the change; nil where there is none that can be
// read.
func lastApplied(c *engine.Change) map[string]any {
	text := textOf(valueAt(c.Before.Object, "metadata", "annotations", engine.LastApplied))
	var manifest map[string]any
	if text == "" || json.Unmarshal([]byte(text), &manifest) != nil {
		return nil
	}
	if engine.IsSecret(c.Before) { // the server moves one to the other
		data, _ := manifest["data"].(map[string]any)
		texts, _ := manifest["stringData"].(map[string]any)
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
