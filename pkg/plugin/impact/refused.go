package impact

import (
	"cmp"
	"context"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/diff"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/openapi"
)

// rule is a rule by which the server refuses an update.
type rule struct {
	place  string   // may not change, nor anything below it ...
	except []string // ... except this
	// refused restricts the rule to some changes; nil is all.
	refused func(before, after map[string]any) bool
	// why completes "spec.selector ..."; "may not change" by default.
	why string
}

func (r *rule) concerns(changed string) bool {
	return meet(changed, r.place) &&
		!slices.ContainsFunc(r.except, func(p string) bool { return isWithin(changed, p) })
}

// ImmutableRefusals predicts the fields of a change that the server will refuse.
func ImmutableRefusals(c *engine.Change) []engine.Impact {
	rules := updateRules[c.Subject.GroupKind]
	if c.Subject.Subresource != "" || c.After == nil || len(rules) == 0 {
		return nil
	}
	advice := "leave it out, or delete the " + c.Subject.Kind + " and create it again"
	if owner := Workload(c.Before); owner != "" {
		advice = "change " + owner + " instead"
	}
	decoded := func(u *unstructured.Unstructured) func() map[string]any {
		return sync.OnceValue(func() map[string]any { return openapi.AsStored(u).Object })
	}
	before, after, concerned := decoded(c.Before), decoded(c.After), make([][]fieldpath.Path, len(rules))
	for i := range c.Fields {
		f, place := &c.Fields[i], engine.PathPattern(c.Fields[i].Path)
		for j := range rules {
			if rules[j].concerns(place) && !keptByServer(before, after, f) {
				concerned[j] = append(concerned[j], f.Path)
			}
		}
	}
	var out []engine.Impact
	for i, r := range rules {
		if fields := concerned[i]; len(fields) > 0 &&
			(r.refused == nil || r.refused(c.Before.Object, c.After.Object)) {
			said := pathNames(fields) + " " + cmp.Or(r.why, "may not change")
			out = append(out, engine.Impact{
				Code: engine.ImpactImmutable, Fields: fields, Advice: advice,
				Text: "the server will refuse it: " + said, Brief: "the server will refuse them: " + said,
			})
		}
	}
	return out
}

// keptByServer reports whether the server reads the two values as the same: it has a default for a removed
// value, fills it in again on a Pod (the admission plugin Priority), or does not distinguish an empty value.
func keptByServer(before, after func() map[string]any, f *engine.FieldChange) bool {
	if f.Kind != engine.Removed && (f.Kind != engine.Added || !empty(f.To)) {
		return false
	}
	was, _ := diff.Lookup(before(), f.Path)
	is, _ := diff.Lookup(after(), f.Path)
	return diff.Same(was, is) ||
		f.Kind == engine.Removed &&
			slices.Contains([]string{"spec.priority", "spec.preemptionPolicy"}, engine.PathPattern(f.Path))
}

func empty(v any) bool {
	switch v := v.(type) {
	case map[string]any:
		return len(v) == 0
	case []any:
		return len(v) == 0
	}
	return v == nil || v == false || v == "" || v == int64(0)
}

// invalid returns the written values that the server will refuse, by its schema, if that can be read.
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
		if len(out[i].Fields) > 1 && out[i].Brief == "is required" {
			out[i].Brief = "are required"
		}
		said := pathNames(out[i].Fields) + " " + out[i].Brief
		out[i].Text, out[i].Brief = "the server will refuse it: "+said, "the server will refuse them: "+said
	}
	return out
}
