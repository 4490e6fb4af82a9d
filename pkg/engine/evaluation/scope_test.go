package evaluation_test

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/evaluation"
)

// requests is a world that notes what it is asked, and compares metadata.name in field selectors.
type requests struct {
	scaled
	mu   sync.Mutex // objects are looked up side by side
	made []string
}

func (r *requests) note(request string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.made = append(r.made, request)
}

func (r *requests) Get(ctx context.Context, k engine.ObjectKey) (*unstructured.Unstructured, error) {
	r.note("get " + k.String())
	return r.scaled.Get(ctx, k)
}

func (r *requests) List(ctx context.Context, s engine.Selection) iter.Seq2[*unstructured.Unstructured, error] {
	r.note("list " + s.String() + " " + s.Fields)
	return func(yield func(*unstructured.Unstructured, error) bool) {
		byField := fields.ParseSelectorOrDie(s.Fields)
		for u, err := range r.scaled.List(ctx, s) {
			if byField.Matches(fields.Set{"metadata.name": u.GetName()}) && !yield(u, err) {
				return
			}
		}
	}
}

func in(namespace string, u *unstructured.Unstructured) *unstructured.Unstructured {
	u.SetNamespace(namespace)
	return u
}

// TestRunChangesWhatIsInTheScope has a trigger outside of the scope of every run.
func TestRunChangesWhatIsInTheScope(t *testing.T) {
	w := world{
		in("platform", configMap("trigger-1")), in("a", labelled(configMap("web"), "app", "web")), in("a", configMap("db")), in("b", configMap("web")),
	}
	everywhere := engine.Selection{Version: "v1", Kind: "ConfigMap", Namespace: "?", Name: "*"}
	exact := engine.Selection{Version: "v1", Kind: "ConfigMap", Namespace: "a", Name: "db"}
	filter := engine.Selection{Version: "v1", Kind: "ConfigMap", Labels: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}}
	scale := everywhere
	scale.Subresource = "scale"
	webLabel := labels.SelectorFromSet(labels.Set{"app": "web"})

	inA := &engine.Scope{Namespaces: []string{"a"}}
	webInA := only("web")
	webInA.Namespaces = []string{"a"}
	for name, c := range map[string]struct {
		target     engine.Selection
		scope      *engine.Scope
		want, asks []string
	}{
		"no scope":                         {everywhere, nil, []string{"a/web", "a/db", "b/web"}, []string{"list ConfigMap ?/* "}},
		"a namespace":                      {everywhere, inA, []string{"a/web", "a/db"}, []string{"list ConfigMap a/* "}},
		"one object":                       {everywhere, webInA, []string{"a/web"}, []string{"get ConfigMap a/web"}},
		"a name in all namespaces":         {everywhere, only("web"), []string{"a/web", "b/web"}, []string{"list ConfigMap ?/web "}},
		"one object of those with a label": {filter, webInA, []string{"a/web"}, []string{"get ConfigMap a/web"}},
		"labels":                           {everywhere, &engine.Scope{Labels: webLabel}, []string{"a/web"}, []string{"list ConfigMap ?/* "}},
		"a field":                          {everywhere, &engine.Scope{Fields: fields.OneTermEqualSelector("metadata.name", "web")}, []string{"a/web", "b/web"}, []string{"list ConfigMap ?/* metadata.name=web"}},
		"a target in the scope":            {exact, inA, []string{"a/db"}, []string{"get ConfigMap a/db"}},
		"a target with a field":            {exact, &engine.Scope{Fields: fields.OneTermEqualSelector("metadata.name", "web")}, nil, []string{"list ConfigMap a/db metadata.name=web"}},
		"a target without the label":       {exact, &engine.Scope{Labels: webLabel}, nil, []string{"get ConfigMap a/db"}},
		"a target in another namespace":    {exact, &engine.Scope{Namespaces: []string{"b"}}, nil, nil},
		"another name":                     {exact, webInA, nil, nil},
		"subresources in a namespace":      {scale, inA, []string{"a/web", "a/db"}, []string{"list ConfigMap a/* ", "get ConfigMap/scale a/web", "get ConfigMap/scale a/db"}},
		"subresources by the labels of their objects": {scale, &engine.Scope{Labels: webLabel}, []string{"a/web"}, []string{"list ConfigMap ?/* ", "get ConfigMap/scale a/web"}},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			reader := &requests{scaled: scaled{w}}
			p := appender{rule{name: "log", key: "names"}, c.target}
			e := evaluation.New([]engine.Program{p}, &engine.World{Reader: reader}, evaluation.Options{Scope: c.scope})
			if err := e.Prepare(t.Context(), w[:1]); err != nil {
				t.Fatal(err)
			}
			if err := e.Run(t.Context(), world{}, func(c *engine.Change) error {
				got = append(got, c.Subject.Namespace+"/"+c.Subject.Name)
				return nil
			}); err != nil {
				t.Fatal(err)
			}
			asks := slices.DeleteFunc(reader.made, func(ask string) bool { return strings.HasPrefix(ask, "get Namespace ") })
			slices.Sort(asks) // some are asked side by side
			slices.Sort(c.asks)
			if d := cmp.Diff(fmt.Sprintf("%q %q", c.want, c.asks), fmt.Sprintf("%q %q", got, asks)); d != "" {
				t.Error(d)
			}
		})
	}
}

// TestRunTellsOfTriggersThatFail: what a rule would do in the scope is not known where it fails on
// a trigger, wherever that is.
func TestRunTellsOfTriggersThatFail(t *testing.T) {
	w := world{configMap("asked"), configMap("broken-1"), configMap("held-1")}
	p := pointing{rule: rule{name: "p"}, targets: []engine.Selection{{Version: "v1", Kind: "ConfigMap", Namespace: "default", Name: "asked"}}}
	e := evaluation.New([]engine.Program{p}, &engine.World{Reader: w}, evaluation.Options{Scope: only("asked")})
	if err := e.Prepare(t.Context(), w); err != nil {
		t.Fatal(err)
	}
	var got []string
	if err := e.Run(t.Context(), w[:1], func(c *engine.Change) error {
		got = append(got, fmt.Sprintf("%s incomplete=%t", c.Subject, c.Incomplete()))
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff([]string{"ConfigMap default/asked incomplete=false", "ConfigMap default/broken-1 incomplete=true"}, got); d != "" {
		t.Error(d)
	}
}

// TestTypedObjectThatIsNotThere names an object that only a pattern of targets covers.
func TestTypedObjectThatIsNotThere(t *testing.T) {
	p := appender{rule{name: "log", key: "names"}, engine.Selection{Version: "v1", Kind: "ConfigMap", Namespace: "*", Name: "*"}}
	scope := only("gone")
	scope.Namespaces = []string{"default"}
	w := world{configMap("trigger-1")}
	e := evaluation.New([]engine.Program{p}, &engine.World{Reader: w}, evaluation.Options{Scope: scope})
	if err := e.Prepare(t.Context(), w); err != nil {
		t.Fatal(err)
	}
	if err := e.Run(t.Context(), world{}, func(c *engine.Change) error { t.Errorf("got %s", c.Subject); return nil }); err != nil {
		t.Fatal(err)
	}
	if len(e.Unreadable()) != 1 || e.Unreadable()[0].What != "ConfigMap default/gone" {
		t.Errorf("unreadable: %v", e.Unreadable())
	}
}
