package write

import (
	"context"
	"fmt"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
)

// EventSource is the source of the events.
const EventSource = "kubectl-mutate"

// EventRecorder records events. It is safe for concurrent use if its functions are.
type EventRecorder struct {
	// Create creates an object in the cluster.
	Create func(context.Context, *unstructured.Unstructured) error
	// Now is the clock. Never nil.
	Now func() time.Time
	// Warn receives the reason why an event was not recorded. Never nil.
	Warn func(error)

	forbidden sync.Map // namespaces
}

// Wrote records an event for each mutate-existing rule that changed a written object.
func (r *EventRecorder) Wrote(ctx context.Context, t *Task, written *Result) {
	for _, rule := range t.Propagated {
		r.PolicyApplied(ctx, written.Key, rule)
	}
}

// PolicyApplied records that a rule changed an object. A failure is only a warning, since the object has been
// changed. Without permission to create events, there is one attempt per namespace.
func (r *EventRecorder) PolicyApplied(ctx context.Context, key engine.ObjectKey, rule engine.RuleRef) {
	e := r.event(key, rule)
	namespace := e.GetNamespace()
	if _, ok := r.forbidden.Load(namespace); ok {
		return
	}
	err := r.Create(ctx, e)
	if err == nil {
		return
	}
	if apierrors.IsForbidden(err) {
		r.forbidden.Store(namespace, true)
	}
	r.Warn(fmt.Errorf("%s was changed, but its event could not be recorded: %w", key, err))
}

// event is a core/v1 Event; `kubectl describe` shows its reason, source and message. Events of cluster-scoped
// objects are in the namespace default, as for all Kubernetes components.
func (r *EventRecorder) event(key engine.ObjectKey, rule engine.RuleRef) *unstructured.Unstructured {
	namespace := key.Namespace
	if namespace == "" {
		namespace = metav1.NamespaceDefault
	}
	prefix := key.Name
	if len(validation.NameIsDNSSubdomain(prefix, false)) > 0 { // such as a role's name
		prefix = EventSource
	}
	now := r.Now().UTC().Format(time.RFC3339)
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1",
		"kind":       "Event",
		"metadata":   map[string]any{"generateName": prefix + ".", "namespace": namespace},
		"involvedObject": map[string]any{
			"apiVersion": key.GroupVersionKind().GroupVersion().String(), "kind": key.Kind,
			"namespace": key.Namespace, "name": key.Name, "uid": string(key.UID),
		},
		"type":               "Normal",
		"reason":             "PolicyApplied", // as in Kyverno's documentation
		"message":            fmt.Sprintf("policy %s applied", rule),
		"source":             map[string]any{"component": EventSource},
		"reportingComponent": EventSource,
		"firstTimestamp":     now,
		"lastTimestamp":      now,
		"count":              int64(1),
	}}
}
