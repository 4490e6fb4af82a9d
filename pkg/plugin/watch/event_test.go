package watch_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	apiwatch "k8s.io/apimachinery/pkg/watch"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/cluster"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/watch"
)

// event is "CREATE a=x" or "UPDATE a=y was x".
func event(t *testing.T, text string) *watch.Event {
	t.Helper()
	words := strings.Fields(text)
	name, to, _ := strings.Cut(words[1], "=")
	s := &script{t: t}
	e := &watch.Event{Mapping: s.Mapping(), Operation: engine.Operation(words[0]), Object: object(t, name+"@1="+to)}
	e.Key = engine.KeyOf(e.Object)
	if len(words) > 2 {
		e.Old = object(t, name+"@0="+words[3])
	}
	return e
}

func texts(t *testing.T, events []*watch.Event) []string {
	t.Helper()
	var out []string
	for _, e := range events {
		text := fmt.Sprintf("%s %s=%s", e.Operation, e.Object.GetName(), value(e.Object))
		if e.Old != nil {
			text += " was " + value(e.Old)
		}
		out = append(out, text)
	}
	return out
}

func TestQueueJoins(t *testing.T) {
	for in, want := range map[string]string{
		"CREATE a=1, UPDATE a=2 was 1, UPDATE a=3 was 2": "CREATE a=3",
		"UPDATE a=2 was 1, UPDATE b=1, UPDATE a=3 was 2": "UPDATE a=3 was 1, UPDATE b=1",
		"UPDATE a=2 was 1, DELETE a=2":                   "DELETE a=2",
		"CREATE a=1, DELETE a=1":                         "DELETE a=1",
	} {
		var q watch.Queue
		for _, text := range strings.Split(in, ", ") {
			if err := q.Put(t.Context(), event(t, text)); err != nil {
				t.Fatal(err)
			}
		}
		if got := strings.Join(texts(t, q.Take(10)), ", "); got != want {
			t.Errorf("%s: got %s, want %s", in, got, want)
		}
		if q.Len() != 0 || len(q.Take(1)) != 0 {
			t.Errorf("%s: there is more", in)
		}
	}
}

// What is put back comes first, with what came meanwhile.
func TestQueueReturn(t *testing.T) {
	var q watch.Queue
	put := func(text string) {
		if err := q.Put(t.Context(), event(t, text)); err != nil {
			t.Fatal(err)
		}
	}
	put("UPDATE a=2 was 1")
	put("CREATE b=1")
	taken := q.Take(2)
	put("CREATE c=1")
	put("UPDATE a=3 was 2")
	q.Return(taken)
	if diff := cmp.Diff([]string{"UPDATE a=3 was 1", "CREATE b=1", "CREATE c=1"}, texts(t, q.Take(10))); diff != "" {
		t.Error(diff)
	}
}

// A full queue holds up who puts, but for what can be joined, until something is taken.
func TestQueueIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var q watch.Queue
		for i := range watch.MaxEvents {
			if err := q.Put(t.Context(), event(t, fmt.Sprintf("CREATE u%d=1", i))); err != nil {
				t.Fatal(err)
			}
		}
		put := false
		go func() {
			_ = q.Put(t.Context(), event(t, "CREATE late=1"))
			put = true
		}()
		synctest.Wait()
		if err := q.Put(t.Context(), event(t, "UPDATE u7=2")); err != nil || put || q.Len() != watch.MaxEvents {
			t.Fatalf("%v, put %v, %d events", err, put, q.Len())
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := q.Put(ctx, event(t, "CREATE never=1")); !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
		q.Take(1)
		synctest.Wait()
		if !put || q.Len() != watch.MaxEvents {
			t.Errorf("put %v, %d events", put, q.Len())
		}
	})
}

func TestLoop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, end := context.WithCancel(t.Context())
		var q watch.Queue
		for _, text := range []string{"CREATE a=1", "CREATE b=1", "CREATE c=1"} {
			_ = q.Put(ctx, event(t, text))
		}
		var got, told []string
		failures := 5
		l := watch.Loop{Queue: &q, Most: 2, Report: func(err error) { told = append(told, err.Error()) }}
		l.Evaluate = func(_ context.Context, events []*watch.Event) error {
			if failures--; failures >= 0 {
				return &watch.RetryError{Err: errors.New("the server is away")}
			}
			got = append(got, strings.Join(texts(t, events), "+"))
			if len(got) == 2 {
				end()
				return nil
			}
			_ = q.Put(ctx, event(t, "UPDATE c=2"))
			return errors.New("broken")
		}
		l.Run(ctx, ctx)
		if diff := cmp.Diff([]string{"CREATE a=1+CREATE b=1", "CREATE c=2"}, got); diff != "" {
			t.Error(diff)
		}
		want := []string{"cannot evaluate CREATE of ConfigMap shop/a, trying again: the server is away", "CREATE of ConfigMap shop/a: broken"}
		if diff := cmp.Diff(want, told); diff != "" {
			t.Error(diff)
		}
	})
}

// A Source hands out the objects with their requests; that of what may change has none that is deleted.
func TestSource(t *testing.T) {
	events := []*watch.Event{event(t, "CREATE a=1"), event(t, "UPDATE b=2 was 1"), event(t, "UPDATE c=2"), event(t, "DELETE d=1")}
	read := func(s *watch.Source, selections ...engine.Selection) []string {
		var out []string
		for page, err := range s.Pages(t.Context(), selections) {
			if err != nil {
				t.Fatal(err)
			}
			for i := range page.Len() {
				target, err := page.Target(i)
				if err != nil {
					t.Fatal(err)
				}
				old := "none"
				switch {
				case target.OldObject == target.Object:
					old = "itself"
				case target.OldObject != nil:
					old = fmt.Sprint(target.OldObject.Object["data"])
				}
				out = append(out, fmt.Sprintf("%s %s: old %s", target.Request.Operation, target.Key.Name, old))
			}
		}
		return out
	}
	all := engine.Selection{Kind: "ConfigMap"}
	created := []string{"CREATE a: old none", "UPDATE b: old map[v:1]", "UPDATE c: old itself"}
	world := &engine.World{Reader: nowhere{}}
	everywhere := engine.Scope{ClusterScoped: true}
	if diff := cmp.Diff(created, read(&watch.Source{Events: events, Scope: everywhere, World: world}, all)); diff != "" {
		t.Error(diff)
	}
	triggers := &watch.Source{Events: events, Scope: everywhere, World: world, Live: &watch.Source{Events: events[:1], Scope: everywhere, World: world}}
	if diff := cmp.Diff(append(created, "DELETE d: old itself"), read(triggers, all)); diff != "" {
		t.Error(diff)
	}
	if got := read(triggers, all); len(got) != 1 {
		t.Errorf("the second time: %v", got)
	}
	if got := read(&watch.Source{Events: events, Scope: engine.Scope{Namespaces: []string{"bank"}}, World: world}, all); got != nil {
		t.Errorf("out of scope: %v", got)
	}
	if got := read(&watch.Source{Events: events, Scope: everywhere, World: world}, engine.Selection{Kind: "ConfigMap", Name: "b"}); len(got) != 1 {
		t.Errorf("one name: %v", got)
	}
}

// object is a ConfigMap "UID@VERSION=VALUE"; its name is its UID.
func object(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	uid, rest, _ := strings.Cut(text, "@")
	version, value, _ := strings.Cut(rest, "=")
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap",
		"metadata": map[string]any{"name": uid, "namespace": "shop", "uid": uid, "resourceVersion": version},
		"data":     map[string]any{"v": value}, "status": map[string]any{"at": version},
	}}
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

func (s *script) List(ctx context.Context, each func(*unstructured.Unstructured) error) (string, error) {
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
		if err := each(cluster.WatchEvent{Type: apiwatch.EventType(kind), Object: object(s.t, of)}); err != nil {
			return err
		}
	}
	return is.err
}

func (s *script) String() string { return "configmaps" }

func (s *script) Wants(u *unstructured.Unstructured) bool {
	return !strings.HasPrefix(u.GetName(), "other")
}

func (s *script) Mapping() *meta.RESTMapping {
	return &meta.RESTMapping{
		Resource:         schema.GroupVersionResource{Version: "v1", Resource: "configmaps"},
		GroupVersionKind: schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}, Scope: meta.RESTScopeNamespace,
	}
}

// value is the value of an object, "" for none.
func value(u *unstructured.Unstructured) string {
	if u == nil {
		return ""
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

// What is left comes again after a longer time each time; alone, unless it is of their own objects.
func TestQueueLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var q watch.Queue
		left := func(text string, of ...string) *watch.Event {
			e := event(t, text)
			e.Left = map[engine.ObjectKey]watch.Left{}
			for _, name := range of {
				key := event(t, "CREATE "+name+"=1").Key
				e.Left[key.Whole()] = watch.Left{Key: key}
			}
			return e
		}
		q.Later(left("UPDATE a=1", "a"))
		q.Later(left("UPDATE b=1", "b"))
		q.Later(left("UPDATE a=1", "x"))
		q.Later(left("UPDATE c=1", "c"))
		var sizes []int
		begin := time.Now()
		for len(sizes) < 2 {
			if _, err := q.Wait(t.Context()); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Second)
			got := q.Take(10)
			for _, e := range got {
				if e.Object != nil {
					t.Errorf("%s holds its object", e.Key)
				}
			}
			sizes = append(sizes, len(got))
			if pending, refused := q.Left(); len(pending) == 0 || len(refused) > 0 {
				t.Errorf("what is being evaluated is not pending: %v, %v", pending, refused)
			}
		}
		if diff := cmp.Diff([]int{1, 2}, sizes); diff != "" || time.Since(begin) > 4*time.Second {
			t.Errorf("after %s: %s", time.Since(begin), diff)
		}
		again := left("UPDATE a=1", "a")
		for range 4 {
			q.Later(again)
			begin = time.Now()
			if _, err := q.Wait(t.Context()); err != nil {
				t.Fatal(err)
			}
			again = q.Take(1)[0]
			again.Object = event(t, "UPDATE a=1").Object
		}
		if took := time.Since(begin); took < 8*time.Second || took > 10*time.Second {
			t.Errorf("the fourth time after %s", took)
		}
	})
}

// What was refused is evaluated when the object has changed, and over when that, or its cause, is gone.
func TestEventRenew(t *testing.T) {
	cause, one := event(t, "UPDATE cause=1"), event(t, "UPDATE one=1")
	for name, c := range map[string]struct {
		versions map[string]string // of what there is
		refused  bool
		want     string
	}{
		"the same":                 {map[string]string{"cause": "7", "one": "1"}, true, "rest"},
		"another":                  {map[string]string{"cause": "7", "one": "2"}, true, "again"},
		"gone":                     {map[string]string{"cause": "7"}, true, ""},
		"its cause is gone":        {map[string]string{"one": "2"}, true, ""},
		"one that was not made":    {map[string]string{"cause": "7", "one": "1"}, false, "again"},
		"and its cause is gone":    {map[string]string{"one": "1"}, false, ""},
		"and the object is gone":   {map[string]string{"cause": "7"}, false, "again"},
		"its cause is another one": {map[string]string{"cause": "other", "one": "1"}, false, ""},
	} {
		e := *cause
		e.Object, e.Left = nil, map[engine.ObjectKey]watch.Left{one.Key.Whole(): {Key: one.Key, Refused: c.refused, Version: "1"}}
		again, rest, err := e.Renew(t.Context(), func(_ context.Context, k engine.ObjectKey) (*unstructured.Unstructured, error) {
			version, is := c.versions[k.Name]
			if !is {
				return nil, apierrors.NewNotFound(schema.GroupResource{}, k.Name)
			}
			u := event(t, "UPDATE "+k.Name+"=1").Object.DeepCopy()
			if u.SetResourceVersion(version); version == "other" {
				u.SetUID("other")
			}
			return u, nil
		})
		got := ""
		if again != nil {
			got = "again"
		}
		if rest != nil {
			got += "rest"
		}
		if err != nil || got != c.want {
			t.Errorf("%s: got %q, %v, want %q", name, got, err, c.want)
		}
	}
}

// The loop waits for more changes of an object after one, not before each evaluation.
func TestLoopSettles(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, end := context.WithCancel(t.Context())
		begin := time.Now()
		var q watch.Queue
		for i := range 100 {
			e := event(t, fmt.Sprintf("CREATE u%d=1", i))
			e.Time = time.Now()
			_ = q.Put(ctx, e)
		}
		left := 100
		l := watch.Loop{Queue: &q, Most: 1, Settle: time.Second}
		l.Evaluate = func(context.Context, []*watch.Event) error {
			if left--; left == 0 {
				end()
			}
			return nil
		}
		l.Run(ctx, ctx)
		if took := time.Since(begin); took != time.Second {
			t.Errorf("it took %s", took)
		}
	})
}
