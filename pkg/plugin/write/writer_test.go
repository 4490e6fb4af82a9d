package write

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	jsonpatch "github.com/evanphx/json-patch/v5"
	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/applyconfigurations"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/yaml"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/cluster"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/transport"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/write/journal"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/write/request"
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
	v, err := w.Verify(ctx, key, nil, want)
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

// withoutWaits makes as many attempts as a run does, one right after the other.
func withoutWaits() *cluster.Patience { return &cluster.Patience{Backoff: wait.Backoff{Steps: 10}} }

// errAsItWas has a fakeServer answer with the object that it had before.
var errAsItWas = errors.New("")

var errCut = &url.Error{Op: "Patch", URL: "https://server", Err: io.ErrUnexpectedEOF}

func unavailable() error {
	return apierrors.NewGenericServerResponse(http.StatusServiceUnavailable, "patch", configMaps, "c", "", 0, true)
}

// only calls a hook for the nth request.
func only(n int, do func() error) func(int, cluster.Patch) error {
	return func(i int, _ cluster.Patch) error {
		if i != n {
			return nil
		}
		return do()
	}
}

func TestWriterLooksUpAWriteWhoseAnswerIsLost(t *testing.T) {
	for name, c := range map[string]struct {
		before, after func(*fakeServer) error // of the write, which is the second request
		want          Outcome
		found         bool
		sent          string
		writes        int
	}{
		"the answer is cut":         {after: func(*fakeServer) error { return errCut }, want: Applied, found: true, sent: "(patch) patch", writes: 1},
		"the answer is a 503":       {after: func(*fakeServer) error { return unavailable() }, want: Applied, found: true, sent: "(patch) patch", writes: 1},
		"no connection answers":     {before: func(*fakeServer) error { return &transport.LimitError{} }, want: Applied, sent: "(patch) patch patch", writes: 1},
		"the answer takes too long": {after: func(*fakeServer) error { return &transport.LimitError{} }, want: Applied, found: true, sent: "(patch) patch", writes: 1},
		"the answer is no object":   {after: func(*fakeServer) error { return &cluster.AnswerError{Err: errors.New("HTML")} }, want: Applied, found: true, sent: "(patch) patch", writes: 1},
		"the answer is the old one": {after: func(*fakeServer) error { return errAsItWas }, want: Applied, found: true, sent: "(patch) patch", writes: 1},
		"the answer is a redirect":  {after: func(*fakeServer) error { return &transport.RedirectError{} }, want: Applied, found: true, sent: "(patch) patch", writes: 1},
		"it is redirected before":   {before: func(*fakeServer) error { return &transport.RedirectError{} }, want: Applied, sent: "(patch) patch patch", writes: 1},
		"the request is cut":        {before: func(*fakeServer) error { return errCut }, want: Applied, sent: "(patch) patch patch", writes: 1},
		"the request gets a 503":    {before: func(*fakeServer) error { return unavailable() }, want: Applied, sent: "(patch) patch patch", writes: 1},
		"then somebody deletes it":  {after: func(s *fakeServer) error { s.live = nil; return errCut }, want: Deleted, sent: "(patch) patch", writes: 1},
		"then it is another one":    {after: func(s *fakeServer) error { s.replace(configMap, "u-2"); return errCut }, want: Replaced, sent: "(patch) patch", writes: 1},
		"then somebody changes it": {
			after: func(s *fakeServer) error { s.set("a", "theirs"); return errCut }, want: Drifted, sent: "(patch) patch", writes: 1,
		},
		"somebody was faster, elsewhere": {
			before: func(s *fakeServer) error { s.set("b", "theirs"); return errCut }, want: Applied, sent: "(patch) patch (patch) patch", writes: 1,
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newFakeServer(t, configMap)
			hook := func(do func(*fakeServer) error) func(int, cluster.Patch) error {
				if do == nil {
					return nil
				}
				return only(2, func() error { return do(s) })
			}
			s.before, s.after = hook(c.before), hook(c.after)
			w := writerTo(s)
			w.Patience = withoutWaits()
			r := mustApply(t, w, setA("2"))
			checkOutcome(t, r, c.want)
			checkSent(t, s, c.sent)
			if r.Found != c.found || s.writes != c.writes {
				t.Errorf("found %v, %d writes stored", r.Found, s.writes)
			}
		})
	}
}

// A server that answers the look-up with an old state makes us send again; the
// guard keeps that from being stored twice.
func TestWriterDoesNotWriteTwiceAfterAStaleLookup(t *testing.T) {
	s := newFakeServer(t, configMap)
	old := s.live.DeepCopy()
	s.after = only(2, func() error { return errCut })
	s.read = func(n int) (*unstructured.Unstructured, error) {
		if n == 2 {
			return old, nil
		}
		return nil, nil
	}
	w := writerTo(s)
	w.Patience = withoutWaits()
	r := mustApply(t, w, setA("2"))
	checkOutcome(t, r, Applied)
	checkSent(t, s, "(patch) patch patch")
	if !r.Found || s.writes != 1 {
		t.Errorf("found %v, %d writes stored", r.Found, s.writes)
	}
}

func TestWriterGivesUpOnASilentServer(t *testing.T) {
	s := newFakeServer(t, configMap)
	s.before = func(_ int, p cluster.Patch) error {
		if p.DryRun {
			return nil
		}
		return errCut
	}
	w := writerTo(s)
	w.Patience = withoutWaits()
	w.Patience.Backoff.Steps = 4
	if _, err := verifyAndWrite(t.Context(), w, key, setA("2")); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("got %v", err)
	}
	if len(s.sent) != 1+w.Patience.Backoff.Steps || s.writes != 0 {
		t.Errorf("%d requests, %d stored", len(s.sent), s.writes)
	}
}

func TestWriterJournalsEveryWriteBeforeAndAfter(t *testing.T) {
	s := newFakeServer(t, configMap)
	s.before = only(2, func() error { s.touch(); return nil })
	file := filepath.Join(t.TempDir(), "run.jsonl")
	w, entry := writerTo(s), tasks("c")[0].Entry
	var err error
	w.Journal, err = newJournal(file)
	if err := errors.Join(err, w.Journal.Plan(entry), w.Journal.Begin()); err != nil {
		t.Fatal(err)
	}
	checkOutcome(t, mustApply(t, w, setA("2")), Applied)
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var calls []string
	for line := range strings.Lines(string(text)) {
		var r struct {
			Attempt *journal.Attempt
			Result  *journal.Result
		}
		switch err := json.Unmarshal([]byte(line), &r); {
		case err != nil:
			t.Fatal(err)
		case r.Attempt != nil:
			calls = append(calls, "attempt "+r.Attempt.ResourceVersion)
		case r.Result != nil:
			calls = append(calls, "result "+r.Result.Outcome)
		}
	}
	if d := cmp.Diff([]string{"attempt 2", "attempt 3", "result applied"}, calls); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	if err := w.Journal.Close(); err != nil {
		t.Fatal(err)
	}
	s.sent = nil
	var failed *journal.Error
	if _, err := verifyAndWrite(t.Context(), w, key, setA("3")); !errors.As(err, &failed) {
		t.Errorf("got %v", err)
	}
	checkSent(t, s, "(patch)")
}

// noDryRun is the answer of a server that does not call a webhook with side effects in a dry run.
var noDryRun = apierrors.NewBadRequest(`admission webhook "w" does not support dry run`)

func TestWriterMarksObjectsWithoutDryRunAsUnverified(t *testing.T) {
	s := newFakeServer(t, configMap)
	s.before = func(_ int, p cluster.Patch) error {
		if p.DryRun {
			return noDryRun
		}
		return nil
	}
	v, err := writerTo(s).Verify(t.Context(), key, nil, setA("2"))
	if err != nil {
		t.Fatal(err)
	}
	checkOutcome(t, v.Result, Planned)
	if v.Unverified == nil {
		t.Fatal("it is reported as verified")
	}
	r, err := writerTo(s).Write(t.Context(), v)
	if err != nil {
		t.Fatal(err)
	}
	checkOutcome(t, r, Applied)
	checkSent(t, s, "(patch) patch")
}

func serverError(code int, retryAfter int) error {
	return apierrors.NewGenericServerResponse(code, "get", configMaps, "c", "", retryAfter, true)
}

// withoutA wants data.a gone, which takes a JSON patch: it no longer fits an object
// without one, and the server says so before it looks at the version.
func withoutA(_ context.Context, live *unstructured.Unstructured, _ string) (*unstructured.Unstructured, error) {
	after := live.DeepCopy()
	unstructured.RemoveNestedField(after.Object, "data", "a")
	return after, nil
}

func (s *fakeServer) drop(field string) {
	s.touch()
	delete(s.live.Object["data"].(map[string]any), field)
}

func TestWriterPlansAgainWhereAPatchDoesNotFitAChangedObject(t *testing.T) {
	for name, c := range map[string]struct {
		faster int // request before which somebody else removes the field
		want   Outcome
		sent   string
	}{
		"in the dry run": {1, Unchanged, "(patch)"},
		"in the write":   {2, Unchanged, "(patch) patch"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newFakeServer(t, configMap)
			s.before = only(c.faster, func() error { s.drop("a"); return nil })
			r := mustApply(t, writerTo(s), withoutA)
			checkOutcome(t, r, c.want)
			checkSent(t, s, c.sent)
		})
	}
}

// TestWriterDoesNotRepeatARefusedPatch: the object is the one that the patch
// was made for, so that the refusal stands.
func TestWriterDoesNotRepeatARefusedPatch(t *testing.T) {
	s := newFakeServer(t, configMap)
	s.before = func(int, cluster.Patch) error { return serverError(422, 0) }
	r := mustApply(t, writerTo(s), withoutA)
	checkOutcome(t, r, Failed)
	checkSent(t, s, "(patch)")
}

var configMaps = schema.GroupResource{Resource: "configmaps"}

// fakeServer holds one object. It merges what is applied without pruning or
// conflicts, which is all that a Writer's decisions need; the real server is
// tested in test/e2e.
type fakeServer struct {
	t        *testing.T
	live     *unstructured.Unstructured // nil: there is none
	revision int
	types    managedfields.TypeConverter
	fresh    managedfields.TypeConverter // what a refresh gives
	refreshs int
	sent     []cluster.Patch
	writes   int // stored
	// before is called with each request, and may change the object or answer.
	before func(n int, p cluster.Patch) error
	// after is called when a request has been worked on, and may lose the answer.
	after func(n int, p cluster.Patch) error
	// reads counts the GETs, and read may answer in their place.
	reads int
	read  func(n int) (*unstructured.Unstructured, error)
	// admit may change what the server is about to answer.
	admit func(p cluster.Patch, object *unstructured.Unstructured)
}

func newFakeServer(t *testing.T, manifest string) *fakeServer {
	t.Helper()
	s := &fakeServer{t: t, revision: 1}
	s.replace(manifest, "u-1")
	return s
}

// replace puts another object in the place of the one that is there.
func (s *fakeServer) replace(manifest, uid string) {
	s.t.Helper()
	text, err := yaml.YAMLToJSON([]byte(manifest))
	if err != nil {
		s.t.Fatal(err)
	}
	s.live = &unstructured.Unstructured{}
	if err := s.live.UnmarshalJSON(text); err != nil {
		s.t.Fatal(err)
	}
	s.live.SetUID(types.UID(uid))
	s.touch()
}

// touch is what any other writer does to the object.
func (s *fakeServer) touch() {
	s.revision++
	s.live = s.live.DeepCopy()
	s.live.SetResourceVersion(strconv.Itoa(s.revision))
}

// set is another writer's change of data.
func (s *fakeServer) set(field, value string) {
	s.touch()
	s.live.Object["data"].(map[string]any)[field] = value
}

func (s *fakeServer) Get(context.Context, engine.ObjectKey) (*unstructured.Unstructured, error) {
	s.reads++
	if s.read != nil {
		if u, err := s.read(s.reads); u != nil || err != nil {
			return u, err
		}
	}
	if s.live == nil {
		return nil, apierrors.NewNotFound(configMaps, "c")
	}
	return s.live.DeepCopy(), nil
}

func (s *fakeServer) Types(_ context.Context, _ schema.GroupVersionKind, refresh bool) (managedfields.TypeConverter, error) {
	if refresh {
		s.refreshs++
		s.types = s.fresh
	}
	return s.types, nil
}

func (s *fakeServer) Patch(_ context.Context, _ engine.ObjectKey, p cluster.Patch) (*unstructured.Unstructured, error) {
	s.sent = append(s.sent, p)
	if s.before != nil {
		if err := s.before(len(s.sent), p); err != nil {
			return nil, err
		}
	}
	if s.live == nil {
		return nil, apierrors.NewNotFound(configMaps, "c")
	}
	answer, err := patched(s.live, p)
	if err != nil {
		return nil, err
	}
	if answer.GetResourceVersion() != s.live.GetResourceVersion() || answer.GetUID() != s.live.GetUID() {
		return nil, apierrors.NewConflict(configMaps, "c", http.ErrBodyNotAllowed)
	}
	if s.admit != nil {
		s.admit(p, answer)
	}
	old := s.live
	if !p.DryRun {
		s.writes++
		s.live = answer
		s.touch()
		answer = s.live.DeepCopy()
	}
	if s.after != nil {
		switch err := s.after(len(s.sent), p); {
		case errors.Is(err, errAsItWas):
			return old, nil
		case err != nil:
			return nil, err
		}
	}
	return answer, nil
}

// patched returns an object as a request makes it.
func patched(live *unstructured.Unstructured, p cluster.Patch) (*unstructured.Unstructured, error) {
	text, err := json.Marshal(live.Object)
	if err != nil {
		return nil, err
	}
	if p.Type == types.ApplyPatchType {
		text, err = jsonpatch.MergePatch(text, p.Body)
	} else {
		var patch jsonpatch.Patch
		if patch, err = jsonpatch.DecodePatch(p.Body); err == nil {
			text, err = patch.Apply(text)
		}
	}
	if err != nil {
		return nil, apierrors.NewGenericServerResponse(http.StatusUnprocessableEntity, "", schema.GroupResource{}, "", err.Error(), 0, false)
	}
	answer := &unstructured.Unstructured{}
	return answer, answer.UnmarshalJSON(text)
}

// owned gives the object a manager of its data.a.
func (s *fakeServer) owned(manager string, operation metav1.ManagedFieldsOperationType) {
	s.live.SetManagedFields([]metav1.ManagedFieldsEntry{{
		Manager: manager, Operation: operation, APIVersion: "v1", FieldsType: "FieldsV1",
		FieldsV1: metav1.NewFieldsV1(`{"f:data":{"f:a":{}}}`),
	}})
	s.admit = func(_ cluster.Patch, o *unstructured.Unstructured) { o.SetManagedFields(nil) }
}
