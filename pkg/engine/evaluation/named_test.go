package evaluation_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"
	"sync"
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
