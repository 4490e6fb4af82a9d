package permission_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/permission"
)

func forbidden(name string) error {
	return apierrors.NewForbidden(schema.GroupResource{Group: "apps", Resource: "deployments"}, name, errors.New("no"))
}

func TestForbidden(t *testing.T) {
	for _, c := range []struct {
		name, method, path, object string
		want                       permission.Need
	}{
		{"one object", "GET", "/apis/apps/v1/namespaces/shop/deployments/web", "web", permission.Need{Verb: "get", Group: "apps", Resource: "deployments", Namespace: "shop", Name: "web"}},
		{"a part of it", "PATCH", "/apis/apps/v1/namespaces/shop/deployments/web/scale", "web", permission.Need{Verb: "patch", Group: "apps", Resource: "deployments/scale", Namespace: "shop", Name: "web"}},
		{"a listing", "GET", "/api/v1/pods", "", permission.Need{Verb: "list", Resource: "pods"}},
		{"a listing of one name", "GET", "/api/v1/namespaces/shop/pods", "web", permission.Need{Verb: "list", Resource: "pods", Namespace: "shop", Name: "web"}},
		{"a review", "POST", "/apis/authorization.k8s.io/v1/subjectaccessreviews", "", permission.Need{Verb: "create", Group: "authorization.k8s.io", Resource: "subjectaccessreviews"}},
		{"a path of no resource", "GET", "/metrics", "", permission.Need{Verb: "get", Path: "/metrics"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			answer := forbidden(c.object)
			var got *permission.ForbiddenError
			if err := permission.Forbidden(answer, c.method, c.path); !errors.As(err, &got) || !errors.Is(err, answer) || err.Error() != answer.Error() {
				t.Fatalf("%#v does not say what the server does", err)
			}
			if diff := cmp.Diff(c.want, got.Need); diff != "" {
				t.Error("(-want +got):\n" + diff)
			}
		})
	}
}

func TestForbiddenOtherErrors(t *testing.T) {
	for _, err := range []error{nil, errors.New("forbidden"), apierrors.NewUnauthorized("no")} {
		if got := permission.Forbidden(err, "GET", "/api/v1/pods"); got != err { //nolint:errorlint // the very same
			t.Errorf("%v becomes %v", err, got)
		}
		var lacking permission.Lacking
		if lacking.Of(err); lacking.Hint() != "" {
			t.Errorf("%v: %s", err, lacking.Hint())
		}
	}
}

// Each line of a hint can stand in a role as it is.
func TestLackingHint(t *testing.T) {
	var lacking permission.Lacking
	lacking.Of(fmt.Errorf("reading: %w", errors.Join(
		&engine.UnreadableError{What: "pods", Err: permission.Forbidden(forbidden(""), "GET", "/api/v1/namespaces/shop/pods")},
		&engine.UnreadableError{What: "secrets", Err: permission.Forbidden(forbidden(""), "GET", "/api/v1/namespaces/shop/secrets")},
		permission.Forbidden(forbidden("web"), "GET", "/apis/apps/v1/namespaces/shop/deployments/web"),
	)))
	lacking.Of(permission.Forbidden(forbidden(""), "GET", "/api/v1/nodes"))
	lacking.Of(permission.Forbidden(forbidden(""), "GET", "/api/v1/nodes"))
	for i := range 500 {
		lacking.Of(permission.Forbidden(forbidden(""), "GET", fmt.Sprintf("/api/v1/namespaces/team-%03d/services", i)))
	}
	_, rules, _ := strings.Cut(lacking.Hint(), "\n")
	want := `  - {apiGroups: [""], resources: ["nodes"], verbs: ["list"]}  # ClusterRole
  - {apiGroups: [""], resources: ["pods", "secrets"], verbs: ["list"]}  # Role in shop
  - {apiGroups: ["apps"], resources: ["deployments"], resourceNames: ["web"], verbs: ["get"]}  # Role in shop
  - {apiGroups: [""], resources: ["services"], verbs: ["list"]}  # Role in team-000, team-001, team-002 and 497 more
`
	if diff := cmp.Diff(want, rules); diff != "" {
		t.Error("(-want +got):\n" + diff)
	}
}
