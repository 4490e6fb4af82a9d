package apply

import (
	"net/http"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/cluster"
)

func status(code int, retryAfter int) error {
	return apierrors.NewGenericServerResponse(code, "get", configMaps, "c", "", retryAfter, true)
}

// What may have been stored is not sent again by a layer that cannot look it up.
func TestAPatientServerRepeatsWritesOnlyWhenNothingHasHappened(t *testing.T) {
	unmergeable := &apierrors.StatusError{ErrStatus: metav1.Status{Code: http.StatusInternalServerError, Message: "failed to prune fields"}}
	for name, c := range map[string]struct {
		patch cluster.Patch
		err   error
		sent  int
	}{
		"a dry run that is cut":          {cluster.Patch{Type: types.JSONPatchType, DryRun: true}, errCut, 2},
		"a write that is cut":            {cluster.Patch{Type: types.JSONPatchType}, errCut, 1},
		"a write that gets a 503":        {cluster.Patch{Type: types.JSONPatchType}, unavailable(), 1},
		"a write that gets a 429":        {cluster.Patch{Type: types.JSONPatchType}, status(http.StatusTooManyRequests, 0), 2},
		"an apply that cannot be merged": {cluster.Patch{Type: types.ApplyPatchType, DryRun: true}, unmergeable, 1},
		"a rejection":                    {cluster.Patch{Type: types.JSONPatchType, DryRun: true}, apierrors.NewBadRequest("no"), 1},
	} {
		t.Run(name, func(t *testing.T) {
			s := newFakeServer(t, configMap)
			c.patch.Body = []byte(`[]`)
			if c.patch.Type == types.ApplyPatchType {
				c.patch.Body = []byte(`{}`)
			}
			s.before = only(1, func() error { return c.err })
			_, err := Patient{Server: s, Retry: impatient()}.Patch(t.Context(), key, c.patch)
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
	p := Patient{Server: s, Retry: impatient()}
	if u, err := p.Get(t.Context(), key); err != nil || u.GetName() != "c" || s.reads != 3 {
		t.Errorf("%v, %v after %d reads", u, err, s.reads)
	}
	if _, err := p.Types(t.Context(), key.GroupVersionKind(), false); err != nil {
		t.Error(err)
	}
}
