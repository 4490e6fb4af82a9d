package cluster_test

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/cluster"
)

func withoutWaits() *cluster.Patience { return &cluster.Patience{Backoff: wait.Backoff{Steps: 10}} }

// refusing is a server that answers its first requests for ConfigMaps, reviews, or the list
// of schemas, otherwise.
func refusing(t *testing.T, requests int64, reply func(http.ResponseWriter)) (client *cluster.Client, sent *atomic.Int64) {
	t.Helper()
	s := newServer(t, nil)
	sent = new(atomic.Int64)
	s.instead = func(w http.ResponseWriter, r *http.Request) bool {
		switch {
		case !strings.Contains(r.URL.Path, "/configmaps") && !strings.HasSuffix(r.URL.Path, "reviews") && r.URL.Path != "/openapi/v3":
			return false
		case sent.Add(1) <= requests:
			reply(w)
		default:
			fmt.Fprint(w, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","namespace":"shop"}}`)
		}
		return true
	}
	return s.client(t, cluster.Options{}), sent
}

// What may have been stored is not sent again by a layer that cannot look it up.
func TestRetryingClientRepeatsAWriteOnlyIfNothingHasHappened(t *testing.T) {
	cut := func(http.ResponseWriter) { panic(http.ErrAbortHandler) }
	refuse := func(code int, reason string) func(http.ResponseWriter) {
		return func(w http.ResponseWriter) {
			w.WriteHeader(code)
			fmt.Fprint(w, status(code, reason, "").body)
		}
	}
	for name, c := range map[string]struct {
		patch  cluster.Patch
		answer func(http.ResponseWriter)
		sent   int64
	}{
		"a dry run that is cut":          {cluster.Patch{Type: types.JSONPatchType, DryRun: true}, cut, 2},
		"a dry run that gets a 503":      {cluster.Patch{Type: types.ApplyPatchType, DryRun: true}, refuse(503, "ServiceUnavailable"), 2},
		"a write that is cut":            {cluster.Patch{Type: types.JSONPatchType}, cut, 1},
		"a write that gets a 503":        {cluster.Patch{Type: types.JSONPatchType}, refuse(503, "ServiceUnavailable"), 1},
		"a write that gets a 429":        {cluster.Patch{Type: types.JSONPatchType}, refuse(429, "TooManyRequests"), 2},
		"an apply that cannot be merged": {cluster.Patch{Type: types.ApplyPatchType, DryRun: true}, refuse(500, ""), 1},
		"a write that gets a Retry-After": {cluster.Patch{Type: types.JSONPatchType}, func(w http.ResponseWriter) { // at which client-go would send it again
			w.Header().Set("Retry-After", "0")
			w.WriteHeader(http.StatusServiceUnavailable)
		}, 1},
		"a rejection": {cluster.Patch{Type: types.JSONPatchType, DryRun: true}, refuse(400, "BadRequest"), 1},
	} {
		t.Run(name, func(t *testing.T) {
			client, sent := refusing(t, 1, c.answer)
			c.patch.Body = []byte(`[]`)
			_, err := client.Retrying(withoutWaits()).Patch(t.Context(), key("shop", "a"), c.patch)
			if sent.Load() != c.sent || (err == nil) != (c.sent == 2) {
				t.Errorf("%d requests, %v", sent.Load(), err)
			}
		})
	}
}

func TestRetryingClientReadsAgain(t *testing.T) {
	client, sent := refusing(t, 2, func(w http.ResponseWriter) { w.WriteHeader(http.StatusServiceUnavailable) })
	if u, err := client.Retrying(withoutWaits()).Get(t.Context(), key("shop", "a")); err != nil || u.GetName() != "a" || sent.Load() != 3 {
		t.Errorf("%v, %v after %d requests", u, err, sent.Load())
	}
}

// An object is created once. A review, which stores nothing, is sent again.
func TestClientRepeatsNoCreation(t *testing.T) {
	create := func(c *cluster.Client) error {
		u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap"}}
		u.SetNamespace("shop")
		u.SetGenerateName("a-")
		return c.Create(t.Context(), u)
	}
	review := func(c *cluster.Client) error {
		_, err := c.Raw(t.Context(), http.MethodPost, "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", []byte(`{}`))
		return err
	}
	for name, c := range map[string]struct {
		send       func(*cluster.Client) error
		code       int
		retryAfter string
		sent       int64
	}{
		"a creation that gets a 503":             {create, 503, "0", 1},
		"a creation that gets a 429":             {create, 429, "0", 2},
		"a creation that is to wait for an hour": {create, 429, "3600", 1},
		"a review that gets a 503":               {review, 503, "0", 2},
		"a review that is to wait for an hour":   {review, 503, "3600", 1},
	} {
		t.Run(name, func(t *testing.T) {
			client, sent := refusing(t, 1, func(w http.ResponseWriter) {
				w.Header().Set("Retry-After", c.retryAfter)
				w.WriteHeader(c.code)
			})
			if err := c.send(client); sent.Load() != c.sent || (err == nil) != (c.sent == 2) {
				t.Errorf("%d requests, %v", sent.Load(), err)
			}
		})
	}
}

// A server that has to answer, and leaves one read without an answer, is asked nothing more.
func TestClientGivesUpAfterOneTimeout(t *testing.T) {
	client, sent := refusing(t, 2, func(w http.ResponseWriter) {
		w.WriteHeader(http.StatusGatewayTimeout)
		fmt.Fprint(w, status(http.StatusGatewayTimeout, "Timeout", "").body)
	})
	if err := client.Answers(t.Context()); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if _, err := client.Get(t.Context(), key("shop", "a")); !apierrors.IsTimeout(err) || sent.Load() != 1 {
			t.Errorf("%d requests, %v", sent.Load(), err)
		}
	}
}

// After three calls that hung, a dry run has a second, and is taken to hang on the same.
func TestRetryingClientHurries(t *testing.T) {
	patience := &cluster.Patience{}
	hangs := apierrors.NewInternalError(errors.New(`failed calling webhook "slow.example.com": context deadline exceeded`))
	synctest.Test(t, func(t *testing.T) {
		for range 3 {
			for a := cluster.NewAttempts(patience); ; {
				if time.Sleep(10 * time.Second); a.Wait(t.Context(), hangs) != nil {
					break
				}
			}
		}
	})
	base, sent := refusing(t, 1, func(w http.ResponseWriter) {
		w.WriteHeader(http.StatusGatewayTimeout)
		fmt.Fprint(w, status(http.StatusGatewayTimeout, "Timeout", "").body)
	})
	client := base.Retrying(patience)
	p := cluster.Patch{Type: types.JSONPatchType, Body: []byte(`[]`), DryRun: true}
	if _, err := client.Patch(t.Context(), key("shop", "a"), p); !errors.Is(err, hangs) || sent.Load() != 1 {
		t.Errorf("%d requests, %v", sent.Load(), err)
	}
	if _, err := client.Patch(t.Context(), key("shop", "a"), p); err != nil {
		t.Errorf("what passes in time: %v", err)
	}
}
