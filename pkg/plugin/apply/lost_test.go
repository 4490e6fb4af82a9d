package apply

import (
	"errors"
	"io"
	"net/http"
	"net/url"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/cluster"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/transport"
)

// withoutWaits makes as many attempts as a run does, one right after the other.
func withoutWaits() wait.Backoff { return wait.Backoff{Steps: 10} }

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
		"no connection answers":     {before: func(*fakeServer) error { return &transport.SlowError{} }, want: Applied, sent: "(patch) patch patch", writes: 1},
		"the answer takes too long": {after: func(*fakeServer) error { return &transport.SlowError{} }, want: Applied, found: true, sent: "(patch) patch", writes: 1},
		"the answer is no object":   {after: func(*fakeServer) error { return &cluster.AnswerError{Err: errors.New("HTML")} }, want: Applied, found: true, sent: "(patch) patch", writes: 1},
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
			w.Retry = withoutWaits()
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
	w.Retry = withoutWaits()
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
	w.Retry = withoutWaits()
	w.Retry.Steps = 4
	if _, err := verifyAndWrite(t.Context(), w, key, setA("2")); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("got %v", err)
	}
	if len(s.sent) != 1+w.Retry.Steps || s.writes != 0 {
		t.Errorf("%d requests, %d stored", len(s.sent), s.writes)
	}
}

// records is a journal that notes its calls.
type records struct {
	calls []string
	fail  error
}

func (j *records) Attempt(v *Verified) error {
	j.calls = append(j.calls, "attempt "+v.ResourceVersion)
	return j.fail
}

func (j *records) Result(_ *Verified, r *Result) error {
	j.calls = append(j.calls, "result "+string(r.Outcome))
	return j.fail
}

func TestWriterJournalsEveryWriteBeforeAndAfter(t *testing.T) {
	s := newFakeServer(t, configMap)
	s.before = only(2, func() error { s.touch(); return nil })
	w, j := writerTo(s), &records{}
	w.Journal = j
	checkOutcome(t, mustApply(t, w, setA("2")), Applied)
	if d := cmp.Diff([]string{"attempt 2", "attempt 3", "result applied"}, j.calls); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	s.sent, j.fail = nil, errors.New("disk full")
	if _, err := verifyAndWrite(t.Context(), w, key, setA("3")); !errors.Is(err, j.fail) {
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
	v, err := writerTo(s).Verify(t.Context(), key, setA("2"))
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
