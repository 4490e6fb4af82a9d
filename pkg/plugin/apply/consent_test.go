package apply

import (
	"context"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/applyconfigurations"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/apply/request"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/cluster"
)

func TestWriterTakesFieldsOfAGitOpsManagerOnlyByForce(t *testing.T) {
	s := newFakeServer(t, configMap)
	s.owned("argocd", metav1.ManagedFieldsOperationApply)
	w := writerTo(s)
	r := mustApply(t, w, setA("2"))
	checkOutcome(t, r, Conflicted)
	checkSent(t, s, "(patch)")
	const text = "ConfigMap shop/c: conflict with argocd (Apply): .data.a; change it there, or take it over " +
		"with --take-from=argocd (the owner will then set it back, or fail)"
	if d := cmp.Diff(text, r.Err.Error()); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	w.TakeFrom = []string{"somebody-else"}
	checkOutcome(t, mustApply(t, w, setA("2")), Conflicted)
	w.TakeFrom = []string{"somebody-else", "argocd"}
	r = mustApply(t, w, setA("2"))
	checkOutcome(t, r, Applied)
	if len(r.Takeovers) != 1 || r.Takeovers[0].Verdict != request.Contested {
		t.Errorf("takeovers %v", r.Takeovers)
	}
}

func TestWriterTakesFieldsSetByHand(t *testing.T) {
	s := newFakeServer(t, configMap)
	s.owned("helm", metav1.ManagedFieldsOperationUpdate)
	r := mustApply(t, writerTo(s), setA("2"))
	checkOutcome(t, r, Applied)
	if len(r.Takeovers) != 1 || r.Takeovers[0].Verdict != request.Shown {
		t.Errorf("takeovers %v", r.Takeovers)
	}
}

// losing drops data.keep from every answer, to a patch of one type or to all.
func losing(only types.PatchType) func(cluster.Patch, *unstructured.Unstructured) {
	return func(p cluster.Patch, o *unstructured.Unstructured) {
		if only == "" || p.Type == only {
			unstructured.RemoveNestedField(o.Object, "data", "keep")
		}
	}
}

func TestWriterPatchesWhereAnApplyLosesData(t *testing.T) {
	s := newFakeServer(t, configMap)
	s.types = applyconfigurations.NewTypeConverter(scheme.Scheme)
	s.fresh = s.types
	s.admit = losing(types.ApplyPatchType)
	r := mustApply(t, writerTo(s), setA("2"))
	checkOutcome(t, r, Applied)
	checkSent(t, s, "(apply) (apply) (patch) patch")
	if s.refreshs != 1 || r.Reason.String() != "apply would lose data: data.keep" {
		t.Errorf("%d refreshs, reason %s", s.refreshs, r.Reason)
	}
}

func TestWriterReadsTheSchemaAgainBeforeItPatches(t *testing.T) {
	s := newFakeServer(t, configMap)
	s.types = applyconfigurations.NewTypeConverter(scheme.Scheme)
	s.admit = losing(types.ApplyPatchType) // and the fresh schema is none
	checkOutcome(t, mustApply(t, writerTo(s), setA("2")), Applied)
	checkSent(t, s, "(apply) (patch) patch")
}

func TestWriterAsksBeforeDataIsLost(t *testing.T) {
	s := newFakeServer(t, configMap)
	s.admit = losing("")
	w := writerTo(s)
	r := mustApply(t, w, setA("2"))
	checkOutcome(t, r, Declined)
	if r.Err == nil || !strings.Contains(r.Err.Error(), "the server would drop data.keep, ") {
		t.Errorf("got %v", r.Err)
	}
	checkSent(t, s, "(patch)")
	asked := 0
	w.Confirm = func(context.Context, Result) (bool, error) {
		asked++
		return true, nil
	}
	checkOutcome(t, mustApply(t, w, setA("2")), Applied)
	if asked != 1 {
		t.Errorf("asked %d times", asked)
	}
}

// What was agreed to is no other loss, which shows when the object is verified again.
func TestWriterAsksAgainWhereOtherDataIsLost(t *testing.T) {
	for agreed, want := range map[bool]Outcome{true: Applied, false: Declined} {
		s := newFakeServer(t, configMap)
		s.before = only(2, func() error { s.touch(); s.admit = losing(""); return nil })
		w := writerTo(s)
		w.Confirm = func(context.Context, Result) (bool, error) { return agreed, nil }
		r := mustApply(t, w, setA("2"))
		checkOutcome(t, r, want)
		if !agreed && r.Err == nil {
			t.Errorf("got %v", r.Err)
		}
	}
}

func TestWriterLeavesAnObjectWhereTheChangeIsADifferentOne(t *testing.T) {
	s := newFakeServer(t, configMap)
	s.before = func(n int, _ cluster.Patch) error {
		if n == 2 {
			s.touch()
		}
		return nil
	}
	w := writerTo(s)
	w.Confirm = func(context.Context, Result) (bool, error) { return true, nil }
	tries := 0
	r := mustApply(t, w, func(ctx context.Context, live *unstructured.Unstructured, _ string) (*unstructured.Unstructured, error) {
		if tries++; tries == 1 {
			return setA("2")(ctx, live, "")
		}
		after := live.DeepCopy()
		return after, unstructured.SetNestedField(after.Object, "x", "data", "other")
	})
	checkOutcome(t, r, Drifted)
	checkSent(t, s, "(patch) patch (patch)")
}
