package apply

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/applyconfigurations"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/apply/request"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/cluster"
)

const configMap = `{apiVersion: v1, kind: ConfigMap, metadata: {name: c, namespace: shop}, data: {a: "1", keep: "1"}}`

var key = engine.ObjectKey{GroupKind: schema.GroupKind{Kind: "ConfigMap"}, Version: "v1", Namespace: "shop", Name: "c"}

// setA wants data.a to have a value, on whatever object there is.
func setA(value string) Want {
	return func(_ context.Context, live *unstructured.Unstructured, _ string) (*unstructured.Unstructured, error) {
		after := live.DeepCopy()
		return after, unstructured.SetNestedField(after.Object, value, "data", "a")
	}
}

func writerTo(s *fakeServer) *Writer {
	return &Writer{Server: s, Manager: DefaultFieldManager, DryRun: DryRunNone}
}

// verifyAndWrite is how the commands change one object.
func verifyAndWrite(ctx context.Context, w *Writer, key engine.ObjectKey, want Want) (Result, error) {
	v, err := w.Verify(ctx, key, want)
	if err != nil || v.Outcome != Planned {
		return v.Result, err
	}
	if yes, err := w.ConfirmLoss(ctx, v); !yes || err != nil {
		return v.Result, err
	}
	if w.DryRun != DryRunNone {
		return v.Result, nil
	}
	return w.Write(ctx, v)
}

func mustApply(t *testing.T, w *Writer, want Want) Result {
	t.Helper()
	r, err := verifyAndWrite(t.Context(), w, key, want)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// methods lists what was sent, dry runs in brackets.
func methods(s *fakeServer) string {
	names := map[types.PatchType]string{types.ApplyPatchType: "apply", types.JSONPatchType: "patch"}
	var out []string
	for _, p := range s.sent {
		name := names[p.Type]
		if p.DryRun {
			name = "(" + name + ")"
		}
		out = append(out, name)
	}
	return strings.Join(out, " ")
}

func checkSent(t *testing.T, s *fakeServer, want string) {
	t.Helper()
	if d := cmp.Diff(want, methods(s)); d != "" {
		t.Errorf("other requests (-want +got):\n%s", d)
	}
}

func checkOutcome(t *testing.T, r Result, want Outcome) {
	t.Helper()
	if r.Outcome != want {
		t.Errorf("outcome %s (%v), want %s", r.Outcome, r.Err, want)
	}
}

func TestWriterWritesWhatTheDryRunSent(t *testing.T) {
	s := newFakeServer(t, configMap)
	s.types = applyconfigurations.NewTypeConverter(scheme.Scheme)
	r := mustApply(t, writerTo(s), setA("2"))
	checkOutcome(t, r, Applied)
	checkSent(t, s, "(apply) apply")
	if string(s.sent[0].Body) != string(s.sent[1].Body) || !s.sent[1].Force || s.sent[1].FieldManager != DefaultFieldManager {
		t.Errorf("sent %+v", s.sent)
	}
	if r.Before.GetResourceVersion() == r.After.GetResourceVersion() || !r.OwnersUnknown {
		t.Errorf("result %+v", r)
	}
}

func TestWriterDoesNotWriteWhatTheServerKeeps(t *testing.T) {
	s := newFakeServer(t, configMap)
	s.admit = func(_ cluster.Patch, o *unstructured.Unstructured) { o.Object["data"].(map[string]any)["a"] = "1" }
	checkOutcome(t, mustApply(t, writerTo(s), setA("1000m")), Unchanged)
	checkOutcome(t, mustApply(t, writerTo(s), setA("2")), ServerKeepsValue)
	checkSent(t, s, "(patch) (patch)")
}

func TestWriterDryRun(t *testing.T) {
	s := newFakeServer(t, configMap)
	w := writerTo(s)
	w.DryRun = DryRunClient
	checkOutcome(t, mustApply(t, w, setA("2")), Planned)
	checkSent(t, s, "")
	w.DryRun = DryRunServer
	r := mustApply(t, w, setA("2"))
	checkOutcome(t, r, Planned)
	checkSent(t, s, "(patch)")
	if v, _, _ := unstructured.NestedString(r.After.Object, "data", "a"); v != "2" {
		t.Errorf("after %v", r.After)
	}
}

func TestWriterGivesUpOnAnObjectThatNeverRests(t *testing.T) {
	s := newFakeServer(t, configMap)
	s.before = func(int, cluster.Patch) error { s.touch(); return nil }
	r := mustApply(t, writerTo(s), setA("2"))
	checkOutcome(t, r, Failed)
	var busy *BusyError
	if !errors.As(r.Err, &busy) || busy.Attempts != 6 || len(s.sent) != 6 {
		t.Errorf("%v after %d requests", r.Err, len(s.sent))
	}
}

func TestWriterStopsWithTheRun(t *testing.T) {
	s := newFakeServer(t, configMap)
	ctx, cancel := context.WithCancel(t.Context())
	s.before = func(int, cluster.Patch) error { s.touch(); cancel(); return nil }
	if _, err := verifyAndWrite(ctx, writerTo(s), key, setA("2")); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

func TestWriterLeavesATerminatingObject(t *testing.T) {
	s := newFakeServer(t, configMap)
	now := metav1.Now()
	s.live.SetDeletionTimestamp(&now)
	checkOutcome(t, mustApply(t, writerTo(s), setA("2")), Terminating)
	checkSent(t, s, "")
}

func TestWriterFailsWhereTheServerIgnoresFields(t *testing.T) {
	s := newFakeServer(t, configMap)
	s.admit = func(_ cluster.Patch, o *unstructured.Unstructured) {
		unstructured.RemoveNestedField(o.Object, "data", "new")
	}
	r := mustApply(t, writerTo(s), func(ctx context.Context, live *unstructured.Unstructured, _ string) (*unstructured.Unstructured, error) {
		after, err := setA("2")(ctx, live, "")
		after.Object["data"].(map[string]any)["new"] = "x"
		return after, err
	})
	checkOutcome(t, r, Failed)
	checkSent(t, s, "(patch)")
	if r.Err == nil || r.Err.Error() != "ConfigMap shop/c: the server ignores data.new; nothing was written" {
		t.Errorf("got %v", r.Err)
	}
}

func TestWriterReportsARejection(t *testing.T) {
	s := newFakeServer(t, configMap)
	s.types = applyconfigurations.NewTypeConverter(scheme.Scheme)
	s.before = func(int, cluster.Patch) error {
		return apierrors.NewInvalid(schema.GroupKind{Kind: "ConfigMap"}, "c", nil)
	}
	r := mustApply(t, writerTo(s), setA("2"))
	checkOutcome(t, r, Failed)
	checkSent(t, s, "(apply)")
	if !apierrors.IsInvalid(r.Err) {
		t.Errorf("got %v", r.Err)
	}
}

func TestWriterPatchesWhereTheServerCannotApply(t *testing.T) {
	s := newFakeServer(t, configMap)
	s.types = applyconfigurations.NewTypeConverter(scheme.Scheme)
	s.before = func(_ int, p cluster.Patch) error {
		if p.Type == types.ApplyPatchType {
			return &apierrors.StatusError{ErrStatus: metav1.Status{Code: http.StatusInternalServerError, Message: "failed to prune fields"}}
		}
		return nil
	}
	r := mustApply(t, writerTo(s), setA("2"))
	checkOutcome(t, r, Applied)
	checkSent(t, s, "(apply) (patch) patch")
	if r.Reason.Kind != request.ApplyRefused {
		t.Errorf("reason %s", r.Reason)
	}
	s.sent = nil
	s.before = func(int, cluster.Patch) error {
		return &apierrors.StatusError{ErrStatus: metav1.Status{Code: http.StatusInternalServerError, Message: "broken"}}
	}
	checkOutcome(t, mustApply(t, writerTo(s), setA("3")), Failed)
	checkSent(t, s, "(apply) (patch)")
}

func TestWriterErrorsThatEndTheRun(t *testing.T) {
	lost := errors.New("connection lost")
	s := newFakeServer(t, configMap)
	s.before = func(int, cluster.Patch) error { return lost }
	if _, err := verifyAndWrite(t.Context(), writerTo(s), key, setA("2")); !errors.Is(err, lost) {
		t.Errorf("a lost connection: %v", err)
	}
	s.before = func(int, cluster.Patch) error { return apierrors.NewUnauthorized("expired") }
	if _, err := verifyAndWrite(t.Context(), writerTo(s), key, setA("2")); !apierrors.IsUnauthorized(err) {
		t.Errorf("an expired token: %v", err)
	}
	broken := func(err error) Want {
		return func(context.Context, *unstructured.Unstructured, string) (*unstructured.Unstructured, error) {
			return nil, err
		}
	}
	if _, err := verifyAndWrite(t.Context(), writerTo(s), key, broken(lost)); !errors.Is(err, lost) {
		t.Errorf("an error of the evaluation: %v", err)
	}
	why := errors.New("label value is empty")
	r := mustApply(t, writerTo(s), broken(&ObjectError{Key: key, Err: why}))
	checkOutcome(t, r, Failed)
	if d := cmp.Diff("ConfigMap shop/c: label value is empty", r.Err.Error()); d != "" {
		t.Error(d)
	}
}
