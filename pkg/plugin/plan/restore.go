package plan

import (
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
)

// Recorded are the documents that the file itself holds.
func (r *Run) Recorded() []engine.Document {
	var out []engine.Document
	for _, d := range r.Documents {
		if !d.Installed {
			out = append(out, d.engine())
		}
	}
	return out
}

func (d *Document) engine() engine.Document {
	return engine.NewDocument(&unstructured.Unstructured{Object: d.Content}, d.Origin)
}

// Restore returns the documents of a run in their order, given what is installed in
// the cluster now of the kinds that were read there. The error is an
// *OtherPoliciesError if that has changed.
func (r *Run) Restore(installed []engine.Document) ([]engine.Document, error) {
	here := map[engine.ObjectKey]engine.Document{}
	for _, d := range installed {
		here[d.Key.Named()] = d
	}
	out := make([]engine.Document, 0, len(r.Documents))
	var other OtherPoliciesError
	known := map[engine.ObjectKey]bool{}
	for _, d := range r.Documents {
		key := d.Object.Named()
		known[key] = true
		if !d.Installed {
			out = append(out, d.engine())
			continue
		}
		now, ok := here[key]
		if !ok {
			other.Gone = append(other.Gone, key)
			continue
		}
		digest, err := digestOf(now.Object().Object)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", key, err)
		}
		if digest != d.Digest {
			other.Changed = append(other.Changed, key)
		}
		out = append(out, now)
	}
	for _, d := range installed {
		if key := d.Key.Named(); !known[key] {
			other.New = append(other.New, key)
		}
	}
	if len(other.Changed)+len(other.Gone)+len(other.New) > 0 {
		return nil, &other
	}
	return out, nil
}
