package impact

import (
	"cmp"
	"context"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
)

// rule is one by which the server refuses an update.
type rule struct {
	place  string   // what may not change, with all below it ...
	except []string // ... but for this
	// refused narrows the rule to some changes; nil stands for all.
	refused func(before, after map[string]any) bool
	// why completes "spec.selector ..."; empty stands for "may not change".
	why string
}

func (r *rule) concerns(changed string) bool {
	return meet(changed, r.place) && !slices.ContainsFunc(r.except, func(p string) bool { return isWithin(changed, p) })
}

// ImmutableRefusals predicts, without asking, what of a change the server will refuse.
func ImmutableRefusals(c *engine.Change) []engine.Impact {
	rules := updateRules[c.Subject.GroupKind]
	if c.Subject.Subresource != "" || c.After == nil || len(rules) == 0 {
		return nil
	}
	advice := "leave it out, or delete the " + c.Subject.Kind + " and create it anew"
	if owner := Workload(c.Before); owner != "" {
		advice = "change " + owner + " instead"
	}
	gvk, concerned := c.After.GroupVersionKind(), make([][]fieldpath.Path, len(rules))
	for i := range c.Fields {
		f, place := &c.Fields[i], engine.PathPattern(c.Fields[i].Path)
		for j := range rules {
			if rules[j].concerns(place) && !keptByServer(gvk, f) {
				concerned[j] = append(concerned[j], f.Path)
			}
		}
	}
	var out []engine.Impact
	for i, r := range rules {
		if fields := concerned[i]; len(fields) > 0 && (r.refused == nil || r.refused(c.Before.Object, c.After.Object)) {
			said := names(fields) + " " + cmp.Or(r.why, "may not change")
			out = append(out, engine.Impact{
				Code: engine.ImpactImmutable, Fields: fields, Advice: advice,
				Text: "the server will refuse it: " + said, Brief: "the server will refuse them: " + said,
			})
		}
	}
	return out
}

// keptByServer reports whether the server reads the two values as the same: it has a
// default for what is removed, and makes no difference between an empty value and none.
func keptByServer(gvk schema.GroupVersionKind, f *engine.FieldChange) bool {
	switch f.Kind {
	case engine.Added:
		return empty(f.To) && decodesToNothing(gvk, f.Path, f.To)
	case engine.Removed:
		return empty(f.From) && decodesToNothing(gvk, f.Path, f.From) || defaulted(f)
	}
	return false
}

// decodesToNothing reports whether the server reads an object with an empty value at a place as it reads
// one without it. It does where the Go type has a bool, and not where it has a pointer to one, or a map.
func decodesToNothing(gvk schema.GroupVersionKind, at fieldpath.Path, value any) bool {
	with, err := scheme.Scheme.New(gvk)
	if err != nil {
		return true // no kind of Kubernetes' own
	}
	without := with.DeepCopyObject()
	decoder := runtime.DefaultUnstructuredConverter
	parent := at[:len(at)-1]
	return decoder.FromUnstructured(holding(at, value), with) == nil && decoder.FromUnstructured(holding(parent, map[string]any{}), without) == nil &&
		equality.Semantic.DeepEqual(with, without)
}

// holding returns an object that has nothing but a value at a path: an element stands for the only one of its list.
func holding(p fieldpath.Path, value any) map[string]any {
	for _, e := range slices.Backward(p) {
		if e.FieldName == nil {
			value = []any{value}
		} else {
			value = map[string]any{*e.FieldName: value}
		}
	}
	return value.(map[string]any)
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

// defaults of fields that the rules below are about; nil stands for a default that
// depends on other fields. See the defaults.go of each version in
// k8s.io/kubernetes/pkg/apis.
var defaults = map[string]any{ //nolint:gochecknoglobals // an immutable table
	"restartPolicy": "Always", "dnsPolicy": "ClusterFirst", "schedulerName": "default-scheduler",
	"terminationGracePeriodSeconds": int64(30), "enableServiceLinks": true, "imagePullPolicy": nil,
	"serviceAccount": nil, "serviceAccountName": nil, "priority": nil, "preemptionPolicy": nil,
	"terminationMessagePath": "/dev/termination-log", "terminationMessagePolicy": "File",
	"protocol": "TCP", "defaultMode": int64(420), "apiVersion": "v1", "divisor": "0", "scheme": "HTTP",
	"timeoutSeconds": int64(1), "periodSeconds": int64(10), "successThreshold": int64(1), "failureThreshold": int64(3),
	"volumeMode": "Filesystem", "podManagementPolicy": "OrderedReady", "reclaimPolicy": "Delete",
	"volumeBindingMode": "Immediate", "completionMode": "NonIndexed", "completions": nil, "type": "Opaque", "apiGroup": "rbac.authorization.k8s.io",
	"attachRequired": true, "volumeLifecycleModes": nil, "clusterIP": nil, "clusterIPs": nil, "ipFamilies": nil,
}

func defaulted(f *engine.FieldChange) bool {
	if len(f.Path) == 0 || f.Path[len(f.Path)-1].FieldName == nil {
		return false
	}
	value, ok := defaults[*f.Path[len(f.Path)-1].FieldName]
	return ok && (value == nil || value == f.From)
}

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
		if len(out[i].Fields) > 1 && out[i].Brief == "is required" {
			out[i].Brief = "are required"
		}
		said := names(out[i].Fields) + " " + out[i].Brief
		out[i].Text, out[i].Brief = "the server will refuse it: "+said, "the server will refuse them: "+said
	}
	return out
}
