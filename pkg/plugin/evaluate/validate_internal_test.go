package evaluate

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/permission"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/write"
)

var errLost = errors.New("connection lost")

// goneServer has none of the objects any more, and loses its connection over one.
type goneServer struct {
	write.Server
	lost string
}

func (s goneServer) Get(_ context.Context, key engine.ObjectKey) (*unstructured.Unstructured, error) {
	for range rand.IntN(100) {
		runtime.Gosched() // the answers come in any order
	}
	if key.Name == s.lost {
		return nil, errLost
	}
	return nil, apierrors.NewNotFound(schema.GroupResource{Resource: "configmaps"}, key.Name)
}

// allowing allows everything but to patch what is called forbidden.
type allowing struct{ forbidden string }

func (a allowing) Authorize(_ context.Context, r engine.AccessRequest) (engine.AccessDecision, error) {
	return engine.AccessDecision{Allowed: a.forbidden == "" || r.Name != "" && r.Name != a.forbidden}, nil
}

// validating runs a validation of so many changes, of which each third changes nothing, and returns what was
// emitted.
func validating(t *testing.T, n int, s goneServer, a allowing, emit func(*engine.Change) error) (*validation, []*engine.Change, error) {
	t.Helper()
	gvk := schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}
	mapper := meta.NewDefaultRESTMapper(nil)
	mapper.Add(gvk, meta.RESTScopeNamespace)
	x := &write.Verifier{Concurrency: 4, Writer: &write.Writer{Server: s, DryRun: write.DryRunServer}, Access: a, Mapper: mapper}
	var got []*engine.Change
	v := &validation{run: &Run{options: &Options{Validator: x}}, lacking: &permission.Lacking{}, emit: func(c *engine.Change) error {
		got = append(got, c)
		return emit(c)
	}}
	var stopped error
	for i := range n {
		u := &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"name": fmt.Sprint(i), "namespace": "shop"}}}
		u.SetGroupVersionKind(gvk)
		c := &engine.Change{Subject: engine.KeyOf(u), Before: u, After: u, Target: engine.Target{Key: engine.KeyOf(u), Object: u}}
		if i%3 != 0 {
			c.Fields = []engine.FieldChange{{Kind: engine.Added, Path: fieldpath.MakePathOrDie("data", "a"), To: "b"}}
		}
		if stopped = v.add(t.Context(), c); stopped != nil {
			break
		}
	}
	return v, got, cmp.Or(stopped, v.flush(t.Context()))
}

func ok(*engine.Change) error { return nil }

func TestValidationKeepsTheOrder(t *testing.T) {
	v, got, err := validating(t, 300, goneServer{}, allowing{}, ok)
	if err != nil || len(got) != 300 || len(v.untried.All()) > 0 {
		t.Fatalf("%d changes, %v", len(got), err)
	}
	for i, c := range got {
		if c.Subject.Name != fmt.Sprint(i) {
			t.Fatalf("%s came as number %d", c.Subject.Name, i)
		}
		if tried := len(c.Impacts) == 1 && c.Impacts[0].Code == engine.ImpactUntried; tried != (i%3 != 0) {
			t.Errorf("change %d: %+v", i, c.Impacts)
		}
	}
}

// A lost connection and a printer that fails end the run: nothing that comes later is emitted.
func TestValidationEnds(t *testing.T) {
	_, got, err := validating(t, 300, goneServer{lost: "100"}, allowing{}, ok)
	if !errors.Is(err, errLost) || len(got) != 100 {
		t.Errorf("%d changes, %v", len(got), err)
	}
	broken := errors.New("broken pipe")
	_, got, err = validating(t, 300, goneServer{}, allowing{}, func(c *engine.Change) error {
		if c.Subject.Name == "50" {
			return broken
		}
		return nil
	})
	if !errors.Is(err, broken) || len(got) != 51 {
		t.Errorf("%d changes, %v", len(got), err)
	}
}

// A change that the user may not make is emitted, and its reason kept.
func TestValidationWithoutPermission(t *testing.T) {
	v, got, err := validating(t, 30, goneServer{}, allowing{forbidden: "7"}, ok)
	if err != nil || len(got) != 30 {
		t.Fatalf("%d changes, %v", len(got), err)
	}
	all := v.untried.All()
	if len(all) != 1 || all[0].Count != 1 || all[0].Text != "you may not patch configmaps" || v.lacking.Hint() == "" {
		t.Errorf("got %+v and %q", all, v.lacking.Hint())
	}
}
