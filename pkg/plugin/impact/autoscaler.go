package impact

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
)

// autoscaling describes a kind of autoscaler: where it names its target, and what it sets.
type autoscaling struct {
	schema.GroupKind
	target string
	sets   string // a place
	does   string // with these fields
	source string // what to change instead
}

var autoscalings = []autoscaling{ //nolint:gochecknoglobals // an immutable table
	{
		GroupKind: schema.GroupKind{Group: "autoscaling", Kind: "HorizontalPodAutoscaler"},
		target:    "scaleTargetRef",
		sets:      "spec.replicas", does: " sets %s, and will set it back",
		source: "its minReplicas and maxReplicas",
	},
	{
		GroupKind: schema.GroupKind{Group: "autoscaling.k8s.io", Kind: "VerticalPodAutoscaler"},
		target:    "targetRef",
		sets:      "spec.template.spec.containers[*].resources", does: " overrules %s on each Pod", source: "its resourcePolicy",
	},
}

// autoscaler is an existing autoscaler with its target.
type autoscaler struct {
	name, source string
	target       engine.ObjectKey
}

// autoscaled returns the autoscalers that set changed fields. Unreadable ones, and kinds that are not
// served, are ignored.
func (r *Reviewer) autoscaled(ctx context.Context, c *engine.Change) ([]engine.Impact, error) {
	if r.Reader == nil || c.Subject.Namespace == "" {
		return nil, nil
	}
	subject := engine.ObjectKey{GroupKind: c.Subject.GroupKind, Name: c.Subject.Name}
	var out []engine.Impact
	for i := range autoscalings {
		kind := &autoscalings[i]
		fields := within(c, kind.sets)
		if len(fields) == 0 {
			continue
		}
		all, err := r.autoscalers(ctx, kind, c.Subject.Namespace)
		if err != nil {
			return nil, err
		}
		for _, a := range all {
			if a.target == subject {
				out = append(out, engine.Impact{
					Code: engine.ImpactAutoscaled, Owner: a.name, Fields: fields,
					Brief:  "a " + kind.Kind + fmt.Sprintf(kind.does, pathNames(fields)),
					Text:   a.name + fmt.Sprintf(kind.does, pathNames(fields)),
					Advice: "change " + a.source + " instead",
				})
			}
		}
	}
	return out, nil
}

// autoscalers lists the autoscalers of a namespace, once. The error is the context's.
func (r *Reviewer) autoscalers(ctx context.Context, kind *autoscaling,
	namespace string,
) ([]autoscaler, error) {
	found, err := r.listed.Do(ctx, [2]string{kind.Kind, namespace}, func(ctx context.Context) (any, error) {
		var out []autoscaler
		for u, err := range r.Reader.List(ctx,
			engine.Selection{Group: kind.Group, Kind: kind.Kind, Namespace: namespace}) {
			if err != nil {
				return out, ctx.Err()
			}
			out = append(out, readAutoscaler(kind, u))
		}
		return out, nil
	})
	out, _ := found.([]autoscaler)
	return out, err
}

// readAutoscaler names the owner controller of an autoscaler, if any: KEDA makes a HorizontalPodAutoscaler
// for each ScaledObject.
func readAutoscaler(kind *autoscaling, u *unstructured.Unstructured) autoscaler {
	ref := valueOf[map[string]any](u.Object, "spec", kind.target)
	out := autoscaler{
		name: kind.Kind + " " + u.GetName(), source: kind.source,
		target: engine.ObjectKey{GroupKind: schema.FromAPIVersionAndKind(valueOf[string](ref, "apiVersion"),
			valueOf[string](ref, "kind")).GroupKind(), Name: valueOf[string](ref, "name")},
	}
	if owner := metav1.GetControllerOfNoCopy(u); owner != nil {
		out.name += " of " + owner.Kind + " " + owner.Name
		out.source = "that " + owner.Kind
	}
	return out
}
