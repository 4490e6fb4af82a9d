package kyverno

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubectl-mutate/kubectl-mutate/internal/conformance"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/diff"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/kyverno/jmespath"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/kyverno/patching"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/kyverno/variables"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/openapi"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/policydecode"
)

// application is a case of testdata/parts/apply.txtar: a patch of a mutate block on an
// object, the object that comes of it, and what is said about it.
type application struct {
	Mutate        map[string]any
	Names         map[string]any // that variables see
	Object        map[string]any
	Want          map[string]any // nil where the object stays the very same
	Warnings      []engine.Warning
	NotIdempotent string // a part of it
	Held          string // a part of why the patch holds itself back
	Why           string // nothing changes; empty where the object holds it all
	Fails         string // a part of the error
}

func TestPatchApply(t *testing.T) {
	conformance.EachCase(t, "testdata/parts/apply.txtar", func(t *testing.T, c *application) {
		s := variables.NewScope(jmespath.New(time.Unix(0, 0), 1, nil))
		for name, value := range c.Names {
			s.Set(name, value)
		}
		why := engine.NewReasons()
		e := &execution{ctx: t.Context(), world: &engine.World{Reader: podSchema{}}, rule: &rule{policy: &policy{inputs: &inputs{}}}, subject: &engine.Target{Key: engine.ObjectKey{GroupKind: schema.GroupKind{Kind: "Pod"}, Version: "v1"}}}
		m := mutation{patches: []*patch{decoded(t, c.Mutate)}}
		got, err := m.mutate(e, s, c.Object, why)
		var held *patching.ConditionError
		switch isHeld := errors.As(err, &held); {
		case c.Fails+c.Held == "" && err != nil:
			t.Fatal(err)
		case c.Fails+c.Held != "" && (err == nil || !strings.Contains(err.Error(), c.Fails+c.Held) || isHeld != (c.Held != "")):
			t.Fatalf("error %v", err)
		}
		switch {
		case c.Want == nil && !diff.Shared(got.Object, c.Object):
			t.Errorf("the object is not the one that was given: %v", got.Object)
		case c.Want != nil:
			if diff := cmp.Diff(c.Want, got.Object); diff != "" {
				t.Errorf("-want +got\n%s", diff)
			}
		}
		if diff := cmp.Diff(c.Why, patchReasons(why)); diff != "" && c.Want == nil {
			t.Errorf("reasons: -want +got\n%s", diff)
		}
		if diff := cmp.Diff(c.Warnings, got.Warnings); diff != "" {
			t.Errorf("warnings: -want +got\n%s", diff)
		}
		if !strings.Contains(got.NotIdempotent, c.NotIdempotent) || (got.NotIdempotent == "") != (c.NotIdempotent == "") {
			t.Errorf("not idempotent because %q, want %q", got.NotIdempotent, c.NotIdempotent)
		}
	})
}

// podSchema knows Pods, in whose lists elements have names.
type podSchema struct{ engine.Reader }

func (podSchema) Schema(_ context.Context, gvk schema.GroupVersionKind) (engine.Schema, error) {
	pod, err := openapi.Builtin(gvk)
	if err != nil {
		return engine.Schema{}, err
	}
	return pod.Schema(gvk), nil
}

func patchReasons(l *engine.Reasons) string {
	if err := l.Err(); err != nil {
		return err.Error()
	}
	return ""
}

// decoded reads the one patch of a block, of whatever form.
func decoded(t *testing.T, mutate map[string]any) *patch {
	r := &policydecode.Report{}
	f := policydecode.Node{Report: r, Path: "spec.rules[0].mutate", Value: mutate}.Fields()
	patches := decodeLegacyPatches(f)
	if len(patches) == 0 {
		patches = decodePatch(f)
	}
	if err := r.Err(); err != nil || len(patches) != 1 {
		t.Fatalf("%d patches, %v", len(patches), err)
	}
	for key := range mutate {
		if got := patches[0].field; got != "mutate."+key {
			t.Errorf("the patch is at %s", got)
		}
	}
	return patches[0]
}

// patchMistake is a case of testdata/parts/patch-mistakes.txtar: what is said about a mutate block
// that is not written as it should be.
type patchMistake struct {
	Mutate any
	Want   []string
}

func TestPatchMistakes(t *testing.T) {
	conformance.EachCase(t, "testdata/parts/patch-mistakes.txtar", func(t *testing.T, c *patchMistake) {
		checkSaid(t, c.Want, func(r *policydecode.Report) {
			f := policydecode.Node{Report: r, Path: "mutate", Value: c.Mutate}.Fields()
			if len(decodeLegacyPatches(f)) == 0 && !f.Has("foreach") {
				decodePatch(f)
			}
		})
	})
}

// patchNaming is a case of testdata/parts/fields.txtar: the fields that a mutate block names.
type patchNaming struct {
	Mutate map[string]any
	Want   []string
}

func TestPatchFields(t *testing.T) {
	conformance.EachCase(t, "testdata/parts/fields.txtar", func(t *testing.T, c *patchNaming) {
		var f footprint
		f.add(c.Mutate)
		if diff := cmp.Diff(c.Want, engine.Distinct(f.paths)); diff != "" {
			t.Errorf("-want +got\n%s", diff)
		}
	})
}
