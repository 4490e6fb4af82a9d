package apply

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
)

func status(code int, retryAfter int) error {
	return apierrors.NewGenericServerResponse(code, "get", configMaps, "c", "", retryAfter, true)
}

func TestPatienceIsForWhatPasses(t *testing.T) {
	for name, c := range map[string]struct {
		err   error
		waits bool
	}{
		"429":                     {status(http.StatusTooManyRequests, 0), true},
		"500":                     {status(http.StatusInternalServerError, 0), true},
		"503":                     {status(http.StatusServiceUnavailable, 0), true},
		"504":                     {status(http.StatusGatewayTimeout, 0), true},
		"a broken connection":     {errCut, true},
		"not found":               {apierrors.NewNotFound(configMaps, "c"), false},
		"invalid":                 {apierrors.NewInvalid(key.GroupKind, "c", nil), false},
		"forbidden":               {apierrors.NewForbidden(configMaps, "c", errors.New("no")), false},
		"conflict":                {apierrors.NewConflict(configMaps, "c", errors.New("stale")), false},
		"anything else":           {errors.New("no such kind"), false},
		"longer than a run lives": {status(http.StatusServiceUnavailable, 3600), false},
	} {
		t.Run(name, func(t *testing.T) {
			calls := 0
			err := new(impatient).patience().Do(t.Context(), func() error {
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
	clock := new(impatient)
	err := clock.patience().Do(t.Context(), func() error { return status(http.StatusServiceUnavailable, 0) })
	if !apierrors.IsServiceUnavailable(err) || len(clock.waits) != maxTries-1 {
		t.Fatalf("%v after %v", err, clock.waits)
	}
	if d := cmp.Diff([]time.Duration{25e6, 50e6, 100e6, 200e6, 400e6, 800e6, 1600e6, 2500e6, 2500e6}, clock.waits); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

func TestTheServersWishIsHonoured(t *testing.T) {
	clock, asked := new(impatient), false
	err := clock.patience().Do(t.Context(), func() error {
		if !asked {
			asked = true
			return status(http.StatusTooManyRequests, 7)
		}
		return nil
	})
	if err != nil || len(clock.waits) != 1 || clock.waits[0] < 7*time.Second {
		t.Errorf("%v, waited %v", err, clock.waits)
	}
}

func TestACancelledRunIsNotPatient(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	calls := 0
	err := Patience{}.Do(ctx, func() error { calls++; cancel(); return errCut })
	if calls != 1 || err == nil {
		t.Errorf("%d calls, %v", calls, err)
	}
}

// What may have been stored is not sent again by a layer that cannot look it up.
func TestAPatientServerRepeatsWritesOnlyWhenNothingHasHappened(t *testing.T) {
	unmergeable := &apierrors.StatusError{ErrStatus: metav1.Status{Code: http.StatusInternalServerError, Message: "failed to prune fields"}}
	for name, c := range map[string]struct {
		patch Patch
		err   error
		sent  int
	}{
		"a dry run that is cut":          {Patch{Type: types.JSONPatchType, DryRun: true}, errCut, 2},
		"a write that is cut":            {Patch{Type: types.JSONPatchType}, errCut, 1},
		"a write that gets a 503":        {Patch{Type: types.JSONPatchType}, unavailable(), 1},
		"a write that gets a 429":        {Patch{Type: types.JSONPatchType}, status(http.StatusTooManyRequests, 0), 2},
		"an apply that cannot be merged": {Patch{Type: types.ApplyPatchType, DryRun: true}, unmergeable, 1},
		"a rejection":                    {Patch{Type: types.JSONPatchType, DryRun: true}, apierrors.NewBadRequest("no"), 1},
	} {
		t.Run(name, func(t *testing.T) {
			s := newFakeServer(t, configMap)
			c.patch.Body = []byte(`[]`)
			if c.patch.Type == types.ApplyPatchType {
				c.patch.Body = []byte(`{}`)
			}
			s.before = only(1, func() error { return c.err })
			_, err := Patient{Server: s, Patience: new(impatient).patience()}.Patch(t.Context(), key, c.patch)
			if len(s.sent) != c.sent || (err == nil) != (c.sent == 2) {
				t.Errorf("%d requests, %v", len(s.sent), err)
			}
		})
	}
}

func TestAPatientServerReadsAgain(t *testing.T) {
	s := newFakeServer(t, configMap)
	s.read = func(n int) (*unstructured.Unstructured, error) {
		if n < 3 {
			return nil, unavailable()
		}
		return nil, nil
	}
	p := Patient{Server: s, Patience: new(impatient).patience()}
	if u, err := p.Get(t.Context(), key); err != nil || u.GetName() != "c" || s.reads != 3 {
		t.Errorf("%v, %v after %d reads", u, err, s.reads)
	}
	if _, err := p.Types(t.Context(), key.GroupVersionKind(), false); err != nil {
		t.Error(err)
	}
}
