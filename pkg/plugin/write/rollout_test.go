package write

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"sigs.k8s.io/yaml"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/cluster"
)

// workload is an object of group apps, with the fields of a line of YAML.
func workload(t *testing.T, kind, fields string) *unstructured.Unstructured {
	t.Helper()
	text, err := yaml.YAMLToJSON([]byte(fields))
	if err != nil {
		t.Fatal(err)
	}
	u := &unstructured.Unstructured{}
	if err := json.Unmarshal(text, &u.Object); err != nil {
		t.Fatal(err)
	}
	u.SetAPIVersion("apps/v1")
	u.SetKind(kind)
	return u
}

func TestRolloutStatus(t *testing.T) {
	for name, c := range map[string]struct{ kind, fields, want string }{
		"a change that was not seen":             {"Deployment", `{metadata: {generation: 2}, status: {observedGeneration: 1}}`, "its controller has not seen the change yet"},
		"a status that was not written":          {"StatefulSet", `{metadata: {generation: 2}, spec: {replicas: 0}}`, "its controller has not seen the change yet"},
		"replicas that are not ready":            {"Deployment", `{metadata: {generation: 2}, spec: {replicas: 3}, status: {observedGeneration: 2, updatedReplicas: 3, replicas: 3, availableReplicas: 2}}`, "Available: 2/3"},
		"a paused Deployment":                    {"Deployment", `{metadata: {generation: 2}, spec: {replicas: 1, paused: true, progressDeadlineSeconds: 600}, status: {observedGeneration: 2, updatedReplicas: 1, replicas: 1, readyReplicas: 1, availableReplicas: 1, conditions: [{type: Progressing, status: Unknown, reason: DeploymentPaused}, {type: Available, status: "True"}]}}`, ""},
		"a DaemonSet that rolls out on demand":   {"DaemonSet", `{metadata: {generation: 2}, spec: {updateStrategy: {type: OnDelete}}, status: {observedGeneration: 2, desiredNumberScheduled: 4}}`, ""},
		"a StatefulSet that rolls out on demand": {"StatefulSet", `{metadata: {generation: 2}, spec: {updateStrategy: {type: OnDelete}}, status: {observedGeneration: 2}}`, ""},
		"another kind":                           {"ReplicaSet", `{metadata: {generation: 2}}`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := rolloutStatus(workload(t, c.kind, c.fields))
			if err != nil || got != c.want {
				t.Errorf("%q, %v; want %q", got, err, c.want)
			}
		})
	}
	const stalled = `{metadata: {generation: 2}, status: {observedGeneration: 2, conditions: [{type: Progressing, reason: ProgressDeadlineExceeded}]}}`
	if _, err := rolloutStatus(workload(t, "Deployment", stalled)); err == nil {
		t.Error("a controller that has given up is waited for")
	}
	const malformed = `{metadata: {generation: 2}, spec: {replicas: many}, status: {observedGeneration: 2, conditions: [x]}}`
	if _, err := rolloutStatus(workload(t, "Deployment", malformed)); err == nil {
		t.Errorf("got %v", err)
	}
}

// reader is what is asked for a rollout.
type reader interface {
	Get(ctx context.Context, key engine.ObjectKey) (*unstructured.Unstructured, error)
}

type readsOnly struct{ reader }

func (readsOnly) Patch(context.Context, engine.ObjectKey, cluster.Patch) (*unstructured.Unstructured, error) {
	panic("a rollout is only read")
}

func (readsOnly) Types(context.Context, schema.GroupVersionKind, bool) (managedfields.TypeConverter, error) {
	panic("a rollout is only read")
}

// states answers one state after the other; the last one stays. nil is none.
type states []*unstructured.Unstructured

func (s *states) Get(context.Context, engine.ObjectKey) (*unstructured.Unstructured, error) {
	u := (*s)[0]
	if len(*s) > 1 {
		*s = (*s)[1:]
	}
	if u == nil {
		return nil, apierrors.NewNotFound(schema.GroupResource{Resource: "deployments"}, "web")
	}
	return u, nil
}

func keyOfKind(kind string) engine.ObjectKey {
	return engine.ObjectKey{GroupKind: schema.GroupKind{Group: "apps", Kind: kind}, Version: "v1", Namespace: "shop", Name: "web"}
}

func TestRolloutWatcher(t *testing.T) {
	const updating = `{metadata: {generation: 2, namespace: shop, name: web}, spec: {replicas: 3}, status: {observedGeneration: 2, replicas: 3, updatedReplicas: 1}}`
	const done = `{metadata: {generation: 2}, spec: {replicas: 0}, status: {observedGeneration: 2, conditions: [{type: Available, status: "True"}]}}`
	for name, c := range map[string]struct {
		kind   string
		states func(*testing.T) states
		told   []string
		want   string
	}{
		"until it is done": {"Deployment", func(t *testing.T) states {
			return states{workload(t, "Deployment", updating), workload(t, "Deployment", updating), workload(t, "Deployment", done)}
		}, []string{"apps/Deployment shop/web: Updated: 1/3"}, ""},
		"not for ever": {
			"Deployment", func(t *testing.T) states { return states{workload(t, "Deployment", updating)} },
			[]string{"apps/Deployment shop/web: Updated: 1/3"},
			"not rolled out after 10s: apps/Deployment shop/web: Updated: 1/3",
		},
		"not for what is gone":    {"Deployment", func(*testing.T) states { return states{nil} }, nil, ""},
		"not for any other thing": {"ReplicaSet", func(*testing.T) states { return states{nil} }, nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var told []string
				server := c.states(t)
				err := waitForRollouts(t.Context(), readsOnly{&server}, []engine.ObjectKey{keyOfKind(c.kind)}, 10*time.Second, func(text string) { told = append(told, text) })
				got := ""
				if err != nil {
					got = err.Error()
				}
				if d := cmp.Diff(c.want, got); d != "" {
					t.Error(d)
				}
				if d := cmp.Diff(c.told, told); d != "" {
					t.Error(d)
				}
			})
		})
	}
}

// unanswered is a server that ends every read with an error.
type unanswered struct{ err error }

func (s unanswered) Get(context.Context, engine.ObjectKey) (*unstructured.Unstructured, error) {
	return nil, s.err
}

// A read that times out is an error of reading: nothing is known of the rollout.
func TestRolloutWatcherReportsAReadThatFails(t *testing.T) {
	for _, failed := range []error{context.DeadlineExceeded, errors.New("connection refused")} {
		err := waitForRollouts(t.Context(), readsOnly{unanswered{failed}}, []engine.ObjectKey{keyOfKind("Deployment")}, time.Hour, func(string) {})
		if !errors.Is(err, failed) || strings.Contains(err.Error(), "not rolled out") {
			t.Errorf("got %v", err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := waitForRollouts(ctx, readsOnly{unanswered{context.Canceled}}, []engine.ObjectKey{keyOfKind("Deployment")}, time.Hour, func(string) {}); !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), "stopped waiting") {
		t.Errorf("an interrupted run: %v", err)
	}
}
