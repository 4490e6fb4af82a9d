package watch_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	apiwatch "k8s.io/apimachinery/pkg/watch"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/cluster"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/watch"
)

// object is a ConfigMap "UID@VERSION=VALUE"; its name is its UID.
func object(t *testing.T, text string) cluster.RawItem {
	t.Helper()
	uid, rest, _ := strings.Cut(text, "@")
	version, value, _ := strings.Cut(rest, "=")
	i, err := cluster.ReadRawItem(fmt.Appendf(nil, `{"metadata":{"name":%q,"namespace":"shop","uid":%q,"resourceVersion":%q},"data":{"v":%q},"status":{"at":%q}}`,
		uid, uid, version, value, version))
	if err != nil {
		t.Fatal(err)
	}
	return i.Own()
}

// script is what a server does, one listing or watch after the other. The last one blocks.
type script struct {
	t     *testing.T
	steps []step

	mu   sync.Mutex
	asks []string // "list", "watch VERSION"
	next int
	done func() // called when there is nothing more to do
}

// step is one answer: objects of a listing, or events of a watch, and how it ends.
type step struct {
	list   string // "a@1=x b@2=y", for a listing with this version at its end: "... @2"
	events string // "ADDED a@1=x, BOOKMARK @5"
	err    error
}

func (s *script) ask(ctx context.Context, what string) (step, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asks = append(s.asks, what)
	if s.next == len(s.steps) {
		s.done()
		s.mu.Unlock()
		<-ctx.Done()
		s.mu.Lock()
		return step{}, ctx.Err()
	}
	s.next++
	return s.steps[s.next-1], nil
}

func (s *script) List(ctx context.Context, each func(cluster.RawItem) error) (string, error) {
	is, err := s.ask(ctx, "list")
	if err != nil || is.err != nil {
		return "", cmpOr(err, is.err)
	}
	version := ""
	for _, text := range strings.Fields(is.list) {
		if v, ok := strings.CutPrefix(text, "@"); ok {
			version = v
		} else if err := each(object(s.t, text)); err != nil {
			return "", err
		}
	}
	return version, nil
}

func cmpOr(a, b error) error {
	if a != nil {
		return a
	}
	return b
}

func (s *script) Watch(ctx context.Context, version string, opened func(), each func(cluster.WatchEvent) error) error {
	is, err := s.ask(ctx, "watch "+version)
	if err != nil {
		return err
	}
	if is.err == nil || is.events != "" {
		opened()
	}
	for _, text := range strings.Split(is.events, ",") {
		if text = strings.TrimSpace(text); text == "" {
			continue
		}
		kind, of, _ := strings.Cut(text, " ")
		if err := each(cluster.WatchEvent{Type: apiwatch.EventType(kind), Item: object(s.t, of)}); err != nil {
			return err
		}
	}
	return is.err
}

func (s *script) String() string                { return "configmaps" }
func (s *script) Wants(i *cluster.RawItem) bool { return !strings.HasPrefix(i.Name, "other") }

func (s *script) Key(i *cluster.RawItem) engine.ObjectKey {
	return engine.ObjectKey{GroupKind: schema.GroupKind{Kind: "ConfigMap"}, Version: "v1", Namespace: i.Namespace, Name: i.Name}
}

func (s *script) Mapping() *meta.RESTMapping {
	return &meta.RESTMapping{
		Resource:         schema.GroupVersionResource{Version: "v1", Resource: "configmaps"},
		GroupVersionKind: schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}, Scope: meta.RESTScopeNamespace,
	}
}

func (s *script) Decode(i cluster.RawItem) (*unstructured.Unstructured, error) {
	u, err := i.Decode()
	if err == nil {
		u.SetGroupVersionKind(s.Mapping().GroupVersionKind)
	}
	return u, err
}

// value is the value of an object, "" for none.
func value(t *testing.T, i *cluster.RawItem) string {
	t.Helper()
	if i == nil {
		return ""
	}
	u, err := i.Decode()
	if err != nil {
		t.Fatal(err)
	}
	out, _, _ := unstructured.NestedString(u.Object, "data", "v")
	return out
}

func expired() error { return apierrors.NewResourceExpired("too old resource version: 1 (7)") }

var _ watch.Resource = (*script)(nil)

// nowhere is a reader of nothing.
type nowhere struct{ engine.Reader }

func (nowhere) Get(_ context.Context, key engine.ObjectKey) (*unstructured.Unstructured, error) {
	return nil, apierrors.NewNotFound(schema.GroupResource{Resource: "namespaces"}, key.Name)
}

// begin begins a follower of all of a resource.
func begin(ctx context.Context, f *watch.Follower) error {
	_, err := f.Begin(ctx)
	return err
}
