package cluster_test

import (
	"errors"
	"io"
	"net/http"
	"net/url"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/cluster"
)

var (
	configMapResource = schema.GroupResource{Resource: "configmaps"}
	errCut            = &url.Error{Op: "Get", URL: "https://server", Err: io.ErrUnexpectedEOF}
)

func statusError(code int, retryAfter int) error {
	return apierrors.NewGenericServerResponse(code, "get", configMapResource, "c", "", retryAfter, true)
}

func TestRetryOfPassingFailures(t *testing.T) {
	for name, c := range map[string]struct {
		err     error
		retried bool
	}{
		"429":                     {statusError(http.StatusTooManyRequests, 0), true},
		"500":                     {statusError(http.StatusInternalServerError, 0), true},
		"503":                     {statusError(http.StatusServiceUnavailable, 0), true},
		"504":                     {statusError(http.StatusGatewayTimeout, 0), true},
		"a broken connection":     {errCut, true},
		"not found":               {apierrors.NewNotFound(configMapResource, "c"), false},
		"invalid":                 {apierrors.NewInvalid(schema.GroupKind{Kind: "ConfigMap"}, "c", nil), false},
		"forbidden":               {apierrors.NewForbidden(configMapResource, "c", errors.New("no")), false},
		"conflict":                {apierrors.NewConflict(configMapResource, "c", errors.New("stale")), false},
		"anything else":           {errors.New("no such kind"), false},
		"longer than a run lives": {statusError(http.StatusServiceUnavailable, 3600), false},
	} {
		t.Run(name, func(t *testing.T) {
			calls := 0
			err := cluster.Retry(t.Context(), &cluster.Patience{Backoff: wait.Backoff{Steps: 10}}, nil, func() error {
				if calls++; calls < 3 {
					return c.err
				}
				return nil
			})
			want := 1
			if c.retried {
				want = 3
			}
			if calls != want || (err == nil) != c.retried {
				t.Errorf("%d calls, %v", calls, err)
			}
		})
	}
}

func TestRetryWaitsLongerAndLonger(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var waits []time.Duration
		last := time.Now()
		err := cluster.Retry(t.Context(), nil, nil, func() error {
			waits = append(waits, time.Since(last))
			last = time.Now()
			return statusError(http.StatusServiceUnavailable, 0)
		})
		least := []time.Duration{0, 25e6, 50e6, 100e6, 200e6, 400e6, 800e6, 1600e6, 2500e6, 2500e6}
		if !apierrors.IsServiceUnavailable(err) || len(waits) != len(least) {
			t.Fatalf("%v after %v", err, waits)
		}
		for i, d := range waits {
			if d < least[i] || d > 2*least[i] {
				t.Errorf("wait %d is %s, want between %s and twice that", i, d, least[i])
			}
		}
	})
}

func TestRetryHonoursRetryAfter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start, calls := time.Now(), 0
		err := cluster.Retry(t.Context(), nil, nil, func() error {
			if calls++; calls == 1 {
				return statusError(http.StatusTooManyRequests, 7)
			}
			return nil
		})
		if waited := time.Since(start); err != nil || calls != 2 || waited < 7*time.Second || waited > 8*time.Second {
			t.Errorf("%v after %d calls and %s", err, calls, waited)
		}
	})
}

// What fails for one cause is repeated for three calls, while another cause, and one that passes, still is for all.
func TestPatienceEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var waiting []string
		patience := &cluster.Patience{Waiting: func(cause string) { waiting = append(waiting, cause) }}
		attempts := func(err error, failures int, takes time.Duration) (calls int) {
			for a := cluster.NewAttempts(patience); ; {
				time.Sleep(takes)
				if calls++; calls > failures {
					a.Succeeded()
					return calls
				}
				if a.Wait(t.Context(), err) != nil {
					return calls
				}
			}
		}
		dead := apierrors.NewInternalError(errors.New(`failed calling webhook "dead.example.com": failed to call webhook`))
		for i, want := range []int{10, 10, 3, 10, 10, 10, 1, 1} {
			failures := 100
			if i == 2 {
				failures = 2
			}
			if got := attempts(dead, failures, 0); got != want {
				t.Errorf("call %d of a webhook: %d attempts, want %d", i, got, want)
			}
		}
		for i, want := range []int{3, 3, 3, 1} {
			if got := attempts(errCut, 100, 10*time.Second); got != want {
				t.Errorf("call %d that hangs: %d attempts, want %d", i, got, want)
			}
		}
		if got := attempts(statusError(http.StatusTooManyRequests, 7), 100, 0); got != 10 {
			t.Errorf("a busy server is asked %d times", got)
		}
		if waiting[0] != "webhook dead.example.com cannot be called" || !slices.Contains(waiting, "the server does not answer") || waiting[len(waiting)-1] != "the server is overloaded (429)" {
			t.Errorf("waiting: %v", waiting)
		}
	})
}

func TestIsMergeFailure(t *testing.T) {
	failure := &apierrors.StatusError{ErrStatus: metav1.Status{Code: http.StatusInternalServerError, Message: "failed to prune fields"}}
	if !cluster.IsMergeFailure(failure) || cluster.IsMergeFailure(apierrors.NewInternalError(errors.New("etcd"))) || cluster.IsMergeFailure(nil) {
		t.Error("a merge failure is a 500 without a reason")
	}
}
