package impact

import (
	"context"
	"slices"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
)

// invalid returns which of the values that are written the server will refuse, by its schema.
// A schema that cannot be read says nothing.
func (r *Reviewer) invalid(ctx context.Context, c *engine.Change) []engine.Impact {
	if r.Reader == nil || c.Subject.Subresource != "" {
		return nil
	}
	s, err := r.Reader.Schema(ctx, c.Subject.GroupVersionKind())
	if err != nil || s.Fields == nil {
		return nil
	}
	var out []engine.Impact
	for i := range c.Fields {
		f := &c.Fields[i]
		if f.Kind == engine.Moved {
			continue
		}
		for _, found := range s.Fields.Validate(f.Path, f.To) {
			same := slices.IndexFunc(out, func(i engine.Impact) bool { return i.Brief == found.Why })
			if same < 0 {
				same = len(out)
				out = append(out, engine.Impact{Code: engine.ImpactInvalid, Brief: found.Why, Advice: "correct the rule"})
				if found.Meant != "" {
					out[same].Advice += "; did you mean " + found.Meant + "?"
				}
			}
			out[same].Fields = append(out[same].Fields, found.Path)
		}
	}
	for i := range out {
		said := names(out[i].Fields) + " " + out[i].Brief
		out[i].Text, out[i].Brief = "the server will refuse it: "+said, "the server will refuse them: "+said
	}
	return out
}
