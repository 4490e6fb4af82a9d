package match_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubectl-mutate/kubectl-mutate/internal/conformance"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/kyverno/match"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/policydecode"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/snapshot"
)

// ruling is a case of testdata/rulings.txtar: whether a rule applies to an object
// in a simulated request, and why not.
type ruling struct {
	Match, Exclude map[string]any
	Object         map[string]any
	Subresource    string
	Namespace      map[string]any // of the object, where the run has it
	Operation      engine.Operation
	User           engine.UserInfo
	World          []map[string]any // nil for a run without a cluster
	Unreadable     bool             // the cluster answers no request
	Want           string
}

func TestRulings(t *testing.T) {
	conformance.EachCase(t, "testdata/rulings.txtar", func(t *testing.T, c *ruling) {
		if diff := cmp.Diff(c.Want, c.decide(t)); diff != "" {
			t.Errorf("-want +got\n%s", diff)
		}
	})
}

// decide asks the match block, then the exclude block, as a rule does.
func (c *ruling) decide(t *testing.T) string {
	candidate := c.candidate(t)
	err := block(t, c.Match).Match(candidate)
	if err == nil {
		err = block(t, c.Exclude).Exclude(candidate)
	}
	var undecided *engine.UnsupportedError
	var notMatched *match.NotMatchedError
	switch {
	case errors.As(err, &undecided):
		return "undecided: " + err.Error()
	case errors.As(err, &notMatched):
		return notMatched.Reason.Error()
	case err != nil:
		return "failed: " + err.Error()
	}
	return "applies"
}

func (c *ruling) candidate(t *testing.T) *match.Candidate {
	u := &unstructured.Unstructured{Object: c.Object}
	out := &match.Candidate{Target: &engine.Target{Key: engine.KeyOf(u), Object: u}, Operation: c.Operation, Context: t.Context(), World: &engine.World{}, Explain: true}
	out.Key.Subresource = c.Subresource
	out.Request.User = c.User
	if out.Operation == "" {
		out.Operation = engine.OperationUpdate
	}
	if c.Namespace != nil {
		out.Namespace = &unstructured.Unstructured{Object: c.Namespace}
	}
	switch {
	case c.Unreadable:
		out.World.Reader = unreadable{}
	case c.World != nil:
		out.World.Reader = world(t, c.World)
	}
	return out
}

func world(t *testing.T, objects []map[string]any) engine.Reader {
	var all []*unstructured.Unstructured
	for _, o := range objects {
		all = append(all, &unstructured.Unstructured{Object: o})
	}
	s, err := snapshot.Load(nil, snapshot.Options{World: engine.Documents(all...)})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// unreadable is a cluster that may not be read.
type unreadable struct{ engine.Reader }

var errForbidden = errors.New("forbidden")

func (unreadable) Get(context.Context, engine.ObjectKey) (*unstructured.Unstructured, error) {
	return nil, errForbidden
}

func (unreadable) List(context.Context, engine.Selection) iter.Seq2[*unstructured.Unstructured, error] {
	return func(yield func(*unstructured.Unstructured, error) bool) { yield(nil, errForbidden) }
}

// outline is a case of testdata/outlines.txtar: what a block says about itself before
// there is any object.
type outline struct {
	Match     map[string]any
	Exclude   map[string]any
	Namespace string // of a Policy
	Want      string
}

func TestOutlines(t *testing.T) {
	conformance.EachCase(t, "testdata/outlines.txtar", func(t *testing.T, c *outline) {
		if diff := cmp.Diff(strings.TrimSpace(c.Want), outlined(block(t, c.Match), block(t, c.Exclude), c.Namespace)); diff != "" {
			t.Errorf("-want +got\n%s", diff)
		}
	})
}

// outlined has a line for each thing to say; what is not so is left out.
func outlined(b, excluded *match.Block, namespace string) string {
	var out []string
	for _, k := range b.Kinds() {
		out = append(out, "kind "+k.String())
	}
	for _, s := range b.Selections(namespace) {
		line := fmt.Sprintf("selects %s/%s/%s", s.Group, s.Version, s.Kind)
		if s.Namespace+s.Name != "" {
			line += fmt.Sprintf(" %s/%s", s.Namespace, s.Name)
		}
		if s.Labels != nil {
			line += " with " + s.Labels.String()
		}
		out = append(out, line)
	}
	for _, text := range append(b.Where(namespace), excluded.Unless()...) {
		out = append(out, "where "+text)
	}
	for _, o := range b.Operations() {
		out = append(out, "only on "+string(o))
	}
	for _, fact := range []struct {
		holds bool
		says  string
	}{
		{b.Empty(), "is empty"},
		{b.AsksOperation(), "asks for the operation"},
		{b.NamesDeletion(), "names DELETE"},
		{b.AsksRoles(), "asks for roles"},
		{b.OnlySubresources(), "only matches subresources"},
	} {
		if fact.holds {
			out = append(out, fact.says)
		}
	}
	return strings.Join(out, "\n")
}

// mistake is a case of testdata/mistakes.txtar: what is said about a block that
// is not written as it should be.
type mistake struct {
	Match any
	Want  string
}

func TestMistakes(t *testing.T) {
	conformance.EachCase(t, "testdata/mistakes.txtar", func(t *testing.T, c *mistake) {
		var said []string
		r := &policydecode.Report{Warn: func(e engine.CompileError) { said = append(said, "warning: "+e.Field+": "+e.Err.Error()) }}
		match.Decode(policydecode.Node{Report: r, Path: "match", Value: c.Match})
		for _, err := range r.Errs {
			var e *engine.CompileError
			if !errors.As(err, &e) {
				t.Fatalf("%v is no CompileError", err)
			}
			said = append(said, e.Field+": "+e.Err.Error())
		}
		if diff := cmp.Diff(strings.TrimSpace(c.Want), strings.Join(said, "\n")); diff != "" {
			t.Errorf("-want +got\n%s", diff)
		}
	})
}

func block(t *testing.T, value map[string]any) *match.Block {
	if value == nil {
		return nil
	}
	r := &policydecode.Report{Warn: func(e engine.CompileError) { t.Errorf("warning: %v", &e) }}
	b := match.Decode(policydecode.Node{Report: r, Path: "match", Value: value})
	if err := r.Err(); err != nil {
		t.Fatal(err)
	}
	return b
}
