package evaluation_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/evaluation"
)

// eachItsOwn is an appender of which each trigger names a target of its own.
type eachItsOwn struct {
	appender
	kind string
}

func (a eachItsOwn) Effects(ctx context.Context, t engine.Target, w *engine.World, s engine.Sink) ([]engine.Effect, error) {
	a.target = engine.Selection{Version: "v1", Kind: a.kind, Namespace: "elsewhere", Name: strings.Replace(t.Key.Name, "trigger", "far", 1)}
	return a.appender.Effects(ctx, t, w, s)
}

// gathering answers no read of a target until some of them are under way, and refuses to list.
type gathering struct {
	world

	mu      sync.Mutex
	waiting int
	enough  chan struct{}
}

func (g *gathering) Get(ctx context.Context, k engine.ObjectKey) (*unstructured.Unstructured, error) {
	g.mu.Lock()
	if g.waiting++; g.waiting == 8 {
		close(g.enough)
	}
	g.mu.Unlock()
	select {
	case <-g.enough:
		return g.world.Get(ctx, k)
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (g *gathering) List(context.Context, engine.Selection) iter.Seq2[*unstructured.Unstructured, error] {
	return refuse
}

func refuse(yield func(*unstructured.Unstructured, error) bool) {
	yield(nil, apierrors.NewForbidden(schema.GroupResource{Resource: "configmaps"}, "", errors.New("not yours")))
}

// Targets that rules name one by one are read several at once, and told in the order of the rules and
// triggers.
func TestNamedTargetsAreReadSideBySide(t *testing.T) {
	const targets, missing = 250, 120
	var scope, all world
	var want []string
	for i := range targets {
		trigger, target := configMap(fmt.Sprintf("trigger-%03d", i)), configMap(fmt.Sprintf("far-%03d", i))
		target.SetNamespace("elsewhere")
		scope = append(scope, trigger)
		want = append(want, trigger.GetName())
		if i != missing {
			all = append(all, target)
		}
	}
	g := &gathering{world: append(all, scope...), enough: make(chan struct{})}
	e := evaluation.New([]engine.Program{eachItsOwn{appender{rule: rule{name: "log", key: "names"}}, "ConfigMap"}}, &engine.World{Reader: g}, evaluation.Options{})
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute) // ends a run that reads one after the other
	defer cancel()
	if err := e.Prepare(ctx, scope); err != nil {
		t.Fatal(err)
	}
	var got []*engine.Change
	if err := e.Run(ctx, scope, func(c *engine.Change) error { got = append(got, c); return nil }); err != nil {
		t.Fatal(err)
	}
	for i := range targets {
		if i == missing {
			want = append(want, "far-120 failed: the target does not exist: ConfigMap \"far-120\" not found")
			continue
		}
		want = append(want, fmt.Sprintf("far-%03d .data.names=trigger-%03d; by log", i, i))
	}
	if d := gocmp.Diff(want, told(got)); d != "" {
		t.Error(d)
	}
}

// counting counts what is read.
type counting struct {
	world
	forbidden bool // to list

	gets, lists, listed atomic.Int64
}

func (c *counting) Get(ctx context.Context, k engine.ObjectKey) (*unstructured.Unstructured, error) {
	if k.Kind == "Namespace" {
		return nil, nil
	}
	c.gets.Add(1)
	return c.world.Get(ctx, k)
}

func (c *counting) List(ctx context.Context, s engine.Selection) iter.Seq2[*unstructured.Unstructured, error] {
	c.lists.Add(1)
	if c.forbidden {
		return refuse
	}
	return func(yield func(*unstructured.Unstructured, error) bool) {
		for u, err := range c.world.List(ctx, s) {
			if c.listed.Add(1); !yield(u, err) {
				return
			}
		}
	}
}

// Where rules name many objects of one kind in one namespace, these are listed, as far as this reads less
// than reading each of them by itself. What comes out is the same.
func TestManyNamedTargetsAreListed(t *testing.T) {
	const few, many = 99, 150
	for name, c := range map[string]struct {
		kind                string
		named, others, gone int // others come first in the listing
		forbidden, streamed bool
		lists, listed, gets int64
	}{
		"all of a namespace":         {named: many, lists: 1, listed: many},
		"some are not there":         {named: many, gone: 7, lists: 1, listed: many - 7, gets: 7},
		"beside others":              {named: many, others: 600, lists: 1, listed: many + 600},
		"beside far more":            {named: many, others: 1000, lists: 1, listed: 5*many + 1, gets: many},
		"few":                        {named: few, gets: few},
		"they may not be listed":     {named: many, forbidden: true, lists: 1, gets: many},
		"Secrets":                    {kind: "Secret", named: many, gets: many},
		"they have been read":        {named: many, streamed: true},
		"all but few have been read": {named: many, gone: few, streamed: true, gets: few},
	} {
		t.Run(name, func(t *testing.T) {
			kind := cmp.Or(c.kind, "ConfigMap")
			object := func(name string, i int) *unstructured.Unstructured {
				u := configMap(fmt.Sprintf("%s-%04d", name, i))
				u.SetKind(kind)
				u.SetNamespace("elsewhere")
				return u
			}
			var scope world
			r := &counting{forbidden: c.forbidden}
			for i := range c.others {
				r.world = append(r.world, object("another", i))
			}
			var want []string
			for i := range c.named {
				trigger := configMap(fmt.Sprintf("trigger-%04d", c.named-i-1)) // their targets are not in the order of the listing
				scope = append(scope, trigger)
				want = append(want, trigger.GetName())
			}
			for i := range c.named {
				if i < c.named-c.gone {
					r.world = append(r.world, object("far", i))
				}
				if n := c.named - i - 1; n < c.named-c.gone {
					want = append(want, fmt.Sprintf("far-%04d .data.names=trigger-%04d; by log", n, n))
				} else {
					want = append(want, fmt.Sprintf("far-%04d failed: the target does not exist: %s \"far-%04d\" not found", n, kind, n))
				}
			}
			if c.streamed {
				scope, want = append(scope, r.world...), nil
			}
			program := eachItsOwn{appender{rule: rule{name: "log", key: "names"}}, kind}
			e := evaluation.New([]engine.Program{program}, &engine.World{Reader: r}, evaluation.Options{})
			if err := e.Prepare(t.Context(), scope); err != nil {
				t.Fatal(err)
			}
			var got []*engine.Change
			if err := e.Run(t.Context(), scope, func(c *engine.Change) error { got = append(got, c); return nil }); err != nil {
				t.Fatal(err)
			}
			if d := gocmp.Diff(want, told(got)); d != "" && !c.streamed {
				t.Error(d)
			}
			if got, want := [3]int64{r.lists.Load(), r.listed.Load(), r.gets.Load()}, [3]int64{c.lists, c.listed, c.gets}; got != want {
				t.Errorf("listings, objects of them and reads of one: %v, want %v", got, want)
			}
		})
	}
}
