package cluster_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/cluster"
)

// server is an API server that gives one answer to everything.
type server struct {
	answer string
	err    error
	asked  []string // "METHOD path", and the body
}

func (s *server) Raw(_ context.Context, method, path string, body []byte) ([]byte, error) {
	s.asked = append(s.asked, method+" "+path, string(body))
	return []byte(s.answer), s.err
}

var (
	jane     = engine.UserInfo{Username: "jane", Groups: []string{"developers"}}
	ofWidget = engine.AccessRequest{
		User: jane, Verb: "list", Group: "example.com", Resource: "widgets", Subresource: "scale",
		Namespace: "shop", Name: "web", FieldSelector: "metadata.name=web", LabelSelector: "app in (a,b)",
	}
)

func TestAuthorizeAsksTheServer(t *testing.T) {
	const endpoint = "POST /apis/authorization.k8s.io/v1/"
	for name, c := range map[string]struct {
		request        engine.AccessRequest
		endpoint, spec string
	}{
		"about oneself": {
			engine.AccessRequest{Verb: "update", Resource: "configmaps", Namespace: "shop"},
			"selfsubjectaccessreviews", `{resourceAttributes: {verb: update, resource: configmaps, namespace: shop}}`,
		},
		"about a path": {
			engine.AccessRequest{Verb: "get", Path: "/healthz"},
			"selfsubjectaccessreviews", `{nonResourceAttributes: {verb: get, path: /healthz}}`,
		},
		"about another user": {
			ofWidget, "subjectaccessreviews",
			`{user: jane, groups: [developers], resourceAttributes: {verb: list, group: example.com, resource: widgets, subresource: scale,
				namespace: shop, name: web, fieldSelector: {rawSelector: metadata.name=web}, labelSelector: {rawSelector: "app in (a,b)"}}}`,
		},
		"about a group": {
			engine.AccessRequest{User: engine.UserInfo{Groups: []string{"developers"}}, Verb: "get", Path: "/"},
			"subjectaccessreviews", `{groups: [developers], nonResourceAttributes: {verb: get, path: /}}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := &server{answer: `{"status": {"allowed": true, "reason": "granted", "evaluationError": "one of two could not tell"}}`}
			d, err := cluster.NewAuthorizer(s).Authorize(t.Context(), c.request)
			want := engine.AccessDecision{Allowed: true, Reason: "granted", Error: "one of two could not tell"}
			if err != nil || d != want {
				t.Fatalf("got %+v, %v", d, err)
			}
			if len(s.asked) != 2 || s.asked[0] != endpoint+c.endpoint {
				t.Fatalf("asked %q", s.asked)
			}
			var sent struct{ Spec any }
			var spec any
			if err := errors.Join(yaml.Unmarshal([]byte(s.asked[1]), &sent), yaml.Unmarshal([]byte(strings.ReplaceAll(c.spec, "\t", " ")), &spec)); err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(spec, sent.Spec); d != "" {
				t.Errorf("(-want +sent):\n%s", d)
			}
		})
	}
}

func TestAuthorizeAsksOnce(t *testing.T) {
	s := &server{answer: `{"status": {}}`}
	a := cluster.NewAuthorizer(s)
	other := ofWidget
	other.User.Groups = []string{"operators"}
	for _, r := range []engine.AccessRequest{ofWidget, ofWidget, other, ofWidget} {
		if d, err := a.Authorize(t.Context(), r); err != nil || d.Allowed {
			t.Fatalf("got %+v, %v", d, err)
		}
	}
	if len(s.asked) != 4 {
		t.Errorf("asked %q", s.asked)
	}
}

func TestAuthorizeForbidden(t *testing.T) {
	s := &server{err: apierrors.NewForbidden(schema.GroupResource{Group: "authorization.k8s.io", Resource: "subjectaccessreviews"}, "", errors.New("no"))}
	a := cluster.NewAuthorizer(s)
	for range 2 { // the second one is not asked again
		_, err := a.Authorize(t.Context(), ofWidget)
		const want = `asking what user "jane" may do needs the permission to create subjectaccessreviews.authorization.k8s.io: `
		if err == nil || !apierrors.IsForbidden(err) || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("got %q", err)
		}
	}
	if len(s.asked) != 2 {
		t.Errorf("asked %q", s.asked)
	}
}

func TestAuthorizeHasNoAnswer(t *testing.T) {
	broken := errors.New("connection refused")
	if _, err := cluster.NewAuthorizer(&server{err: broken}).Authorize(t.Context(), ofWidget); !errors.Is(err, broken) {
		t.Errorf("got %v", err)
	}
	if _, err := cluster.NewAuthorizer(&server{answer: "no JSON"}).Authorize(t.Context(), ofWidget); err == nil {
		t.Error("an answer that is none is taken for one")
	}
}
