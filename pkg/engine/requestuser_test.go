package engine_test

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
)

// server answers every request with the same, and counts them.
type server struct {
	answer string
	err    error
	asked  []string
}

func (s *server) Raw(_ context.Context, method, path string, body []byte) ([]byte, error) {
	s.asked = append(s.asked, method+" "+path+" "+string(body))
	return []byte(s.answer), s.err
}

const alice = `{"status":{"userInfo":{"username":"alice","uid":"7","groups":["dev"],"extra":{"scopes":["a","b"]}}}}`

func TestRequestUserAsksOnce(t *testing.T) {
	s := &server{answer: alice}
	w := &engine.World{Raw: s, Memo: &engine.Memo{}}
	for range 2 {
		u, err := engine.RequestUser(t.Context(), engine.Request{}, w)
		if err != nil {
			t.Fatal(err)
		}
		want := map[string]any{
			"username": "alice", "uid": "7", "groups": []any{"dev"}, "extra": map[string]any{"scopes": []any{"a", "b"}},
		}
		if d := cmp.Diff(want, engine.UserInfoFields(&u)); d != "" {
			t.Errorf("-want +got\n%s", d)
		}
	}
	asked := []string{`POST /apis/authentication.k8s.io/v1/selfsubjectreviews {"kind":"SelfSubjectReview","apiVersion":"authentication.k8s.io/v1","metadata":{},"status":{"userInfo":{}}}`}
	if d := cmp.Diff(asked, s.asked); d != "" {
		t.Errorf("-want +got\n%s", d)
	}
}

func TestRequestUserUnknown(t *testing.T) {
	const asks = "the policy uses request user information, which --request-user gives"
	for name, c := range map[string]struct {
		world *engine.World
		want  string
	}{
		"without a server":       {&engine.World{}, asks + ": x"},
		"by manifests":           {&engine.World{Raw: &server{err: &engine.UnansweredError{}}}, asks + ": x"},
		"to a server that fails": {&engine.World{Raw: &server{err: errors.New("not found")}}, asks + " (who you are cannot be read: not found): x"},
		"by the answer":          {&engine.World{Raw: &server{answer: "{}"}}, asks + " (who you are cannot be read: the answer names no user): x"},
	} {
		t.Run(name, func(t *testing.T) {
			u, err := engine.RequestUser(t.Context(), engine.Request{}, c.world)
			if err == nil || len(engine.UserInfoFields(&u)) > 0 {
				t.Fatalf("got %+v", u)
			}
			if got := (&engine.UnknownUserError{Why: err, Err: errors.New("x")}).Error(); got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
		})
	}
}
