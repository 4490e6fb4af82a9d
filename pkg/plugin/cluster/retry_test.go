package cluster_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/cluster"
)

// clock does not wait, and notes for how long it would have.
type clock struct{ waits []time.Duration }

func (c *clock) policy() cluster.RetryPolicy {
	return cluster.RetryPolicy{
		Sleep:  func(ctx context.Context, d time.Duration) error { c.waits = append(c.waits, d); return ctx.Err() },
		Jitter: func() float64 { return 0 },
	}
}

var (
	configMapResource = schema.GroupResource{Resource: "configmaps"}
	errCut            = &url.Error{Op: "Get", URL: "https://server", Err: io.ErrUnexpectedEOF}
)

func statusError(code int, retryAfter int) error {
	return apierrors.NewGenericServerResponse(code, "get", configMapResource, "c", "", retryAfter, true)
}

func TestWhatPassesIsTriedAgain(t *testing.T) {
	for name, c := range map[string]struct {
		err   error
		waits bool
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
			err := new(clock).policy().Do(t.Context(), func() error {
				if calls++; calls < 3 {
					return c.err
				}
				return nil
			})
			want := 1
			if c.waits {
				want = 3
			}
			if calls != want || (err == nil) != c.waits {
				t.Errorf("%d calls, %v", calls, err)
			}
		})
	}
}

func TestWaitsGrowAndEnd(t *testing.T) {
	c := new(clock)
	err := c.policy().Do(t.Context(), func() error { return statusError(http.StatusServiceUnavailable, 0) })
	if !apierrors.IsServiceUnavailable(err) || len(c.waits) != 9 {
		t.Fatalf("%v after %v", err, c.waits)
	}
	if d := cmp.Diff([]time.Duration{25e6, 50e6, 100e6, 200e6, 400e6, 800e6, 1600e6, 2500e6, 2500e6}, c.waits); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

func TestTheServersWishIsHonoured(t *testing.T) {
	c, asked := new(clock), false
	err := c.policy().Do(t.Context(), func() error {
		if !asked {
			asked = true
			return statusError(http.StatusTooManyRequests, 7)
		}
		return nil
	})
	if err != nil || len(c.waits) != 1 || c.waits[0] < 7*time.Second {
		t.Errorf("%v, waited %v", err, c.waits)
	}
}

func TestACancelledRunDoesNotTryAgain(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	calls := 0
	err := cluster.RetryPolicy{}.Do(ctx, func() error { calls++; cancel(); return errCut })
	if calls != 1 || err == nil {
		t.Errorf("%d calls, %v", calls, err)
	}
}
