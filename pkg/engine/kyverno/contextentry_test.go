package kyverno_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubectl-mutate/kubectl-mutate/internal/conformance"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/kyverno"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/kyverno/jmespath"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/kyverno/variables"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/policydecode"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/snapshot"
)

// loading is a case of testdata/context/loading.txtar: context entries, and what an
// expression gives that uses them.
type loading struct {
	Context   []any
	Namespace string // of a Policy
	Names     map[string]any
	Globals   []map[string]any
	Values    map[string]any
	Given     []string         // entries whose values the user gives
	World     []map[string]any // nil for a run without a cluster
	Granted   bool             // services and registries may be asked
	Query     string
	Want      any
	Fails     string // a part of the error
	// Unsupported reports whether the error is a limit of this program.
	Unsupported bool
}

func TestLoading(t *testing.T) {
	conformance.EachCase(t, "testdata/context/loading.txtar", func(t *testing.T, c *loading) {
		got, err := c.load(t)
		switch {
		case c.Fails == "" && err != nil:
			t.Fatal(err)
		case c.Fails != "" && (err == nil || !strings.Contains(err.Error(), c.Fails)):
			t.Fatalf("got %v, %v; want an error that says %q", got, err, c.Fails)
		}
		if got := engine.OutcomeOf(err) == engine.Unsupported; got != c.Unsupported {
			t.Errorf("unsupported = %t", got)
		}
		if diff := cmp.Diff(c.Want, got); diff != "" {
			t.Errorf("-want +got\n%s", diff)
		}
	})
}

func (c *loading) load(t *testing.T) (any, error) {
	report := strict(t)
	report.Namespace = c.Namespace
	entries := kyverno.DecodeEntries(policydecode.Node{Report: report, Path: "spec.rules[0].context", Value: any(c.Context)})
	from := &kyverno.Sources{Context: t.Context(), World: c.world(t), Globals: kyverno.Globals{}, Values: &variables.Values{}}
	for _, g := range c.Globals {
		u := &unstructured.Unstructured{Object: g}
		from.Globals.Add(u.GetName(), policydecode.Node{Report: &policydecode.Report{}, Value: g})
	}
	from.Values.Add(policydecode.Node{Report: strict(t), Value: c.Values})
	s := variables.NewScope(jmespath.New(from.World.Now, 1, nil))
	for name, value := range c.Names {
		s.Set(name, value)
	}
	entries.Define(s, from, func(name string) bool { return slices.Contains(c.Given, name) })
	query, err := jmespath.Compile(c.Query)
	if err != nil {
		t.Fatal(err)
	}
	return s.Query(query)
}

func (c *loading) world(t *testing.T) *engine.World {
	w := &engine.World{Now: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)}
	if c.Granted {
		conformance.Grant(w)
	}
	if c.World == nil {
		return w
	}
	var objects []*unstructured.Unstructured
	for _, o := range c.World {
		objects = append(objects, &unstructured.Unstructured{Object: o})
	}
	s, err := snapshot.Load(nil, snapshot.Options{World: engine.Documents(objects...)})
	if err != nil {
		t.Fatal(err)
	}
	w.Reader, w.Raw, w.Mapper = s, s, s.Mapper()
	return w
}

// outline is a case of testdata/context/outlines.txtar: what entries say of themselves
// before they load.
type outline struct {
	Context       []any
	Namespace     string
	Globals       []map[string]any
	Asks          []string
	NotIdempotent string
}

func TestOutlines(t *testing.T) {
	conformance.EachCase(t, "testdata/context/outlines.txtar", func(t *testing.T, c *outline) {
		report := strict(t)
		report.Namespace = c.Namespace
		globals := kyverno.Globals{}
		for _, g := range c.Globals {
			u := &unstructured.Unstructured{Object: g}
			globals.Add(u.GetName(), policydecode.Node{Report: strict(t), Value: g})
		}
		entries := kyverno.DecodeEntries(policydecode.Node{Report: report, Path: "context", Value: any(c.Context)})
		var asks []string
		for _, a := range entries.Asks(globals) {
			asks = append(asks, strings.TrimSpace(fmt.Sprintf("%s: %s | %s %s%s", a.Of, a.What, a.Method, a.Path, objectsText(a.Objects))))
		}
		if diff := cmp.Diff(c.Asks, asks); diff != "" {
			t.Errorf("asks: -want +got\n%s", diff)
		}
		if got := entries.NotIdempotent(); !strings.Contains(got, c.NotIdempotent) || (got == "") != (c.NotIdempotent == "") {
			t.Errorf("not idempotent because %q, want %q", got, c.NotIdempotent)
		}
	})
}

func objectsText(s engine.Selection) string {
	if s.Kind == "" {
		return ""
	}
	return fmt.Sprintf("%s/%s%s %s/%s", s.Group, s.Kind, s.Resource, s.Namespace, s.Name)
}

// mistake is a case of testdata/context/mistakes.txtar: what is said about entries that are
// not written as they should be.
type mistake struct {
	Context any
	Want    []string
}

func TestMistakes(t *testing.T) {
	conformance.EachCase(t, "testdata/context/mistakes.txtar", func(t *testing.T, c *mistake) {
		var said []string
		say := func(prefix string, e *engine.CompileError) {
			said = append(said, prefix+strings.TrimPrefix(e.Field+": ", "context")+e.Err.Error())
		}
		r := &policydecode.Report{Warn: func(e engine.CompileError) { say("warning: ", &e) }}
		kyverno.DecodeEntries(policydecode.Node{Report: r, Path: "context", Value: c.Context})
		for _, err := range r.Errs {
			var e *engine.CompileError
			if !errors.As(err, &e) {
				t.Fatalf("%v is no CompileError", err)
			}
			say("", e)
		}
		if diff := cmp.Diff(c.Want, said); diff != "" {
			t.Errorf("-want +got\n%s", diff)
		}
	})
}

// strict is a report that fails the test for whatever is said.
func strict(t *testing.T) *policydecode.Report {
	return &policydecode.Report{Warn: func(e engine.CompileError) { t.Errorf("warning: %v", &e) }}
}
