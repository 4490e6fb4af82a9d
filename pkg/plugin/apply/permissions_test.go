package apply_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/apply"
)

// authorizer allows what is listed as "RESOURCE NAMESPACE NAME", "" for all.
type authorizer struct {
	allowed []string
	answers int // before it fails
	fail    error

	mu    sync.Mutex
	asked []string
}

func (a *authorizer) Authorize(_ context.Context, r engine.AccessRequest) (engine.AccessDecision, error) {
	if r.Verb != "patch" || !r.User.Empty() {
		return engine.AccessDecision{}, fmt.Errorf("asked about %+v", r)
	}
	question := fmt.Sprintf("%s %s %s", apply.Resource{Group: r.Group, Resource: r.Resource, Subresource: r.Subresource}, r.Namespace, r.Name)
	a.mu.Lock()
	defer a.mu.Unlock()
	a.asked = append(a.asked, question)
	if len(a.asked) > a.answers && a.fail != nil {
		return engine.AccessDecision{}, a.fail
	}
	return engine.AccessDecision{Allowed: slices.Contains(a.allowed, question)}, nil
}

var (
	deployments = apply.Resource{Group: "apps", Resource: "deployments"}
	scale       = apply.Resource{Group: "apps", Resource: "deployments", Subresource: "scale"}
)

func TestMissingPermissions(t *testing.T) {
	needs := []apply.RequiredPermission{
		{Resource: scale, Namespace: "shop", Name: "web"},
		{Resource: deployments, Namespace: "shop", Name: "web"},
		{Resource: deployments, Namespace: "shop", Name: "db"},
		{Resource: deployments, Namespace: "bank", Name: "db"},
	}
	for name, c := range map[string]struct {
		allowed []string
		want    []apply.MissingPermission
		asked   int
	}{
		"all in all namespaces": {[]string{"deployments.apps  ", "deployments.apps/scale  "}, nil, 2},
		"namespace by namespace": {
			[]string{"deployments.apps shop ", "deployments.apps bank ", "deployments.apps/scale shop "}, nil, 5,
		},
		"nothing": {nil, []apply.MissingPermission{
			{Resource: deployments, Namespace: "bank", Names: []string{"db"}},
			{Resource: deployments, Namespace: "shop", Names: []string{"web", "db"}},
			{Resource: scale, Namespace: "shop", Names: []string{"web"}},
		}, 9},
		"one by name": {[]string{"deployments.apps  ", "deployments.apps/scale shop web"}, nil, 4},
		"not the subresource": {[]string{"deployments.apps  "}, []apply.MissingPermission{
			{Resource: scale, Namespace: "shop", Names: []string{"web"}},
		}, 4},
	} {
		t.Run(name, func(t *testing.T) {
			a := &authorizer{allowed: c.allowed}
			got, err := apply.MissingPermissions(t.Context(), a, needs, 4)
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(c.want, got); d != "" {
				t.Errorf("(-want +got):\n%s", d)
			}
			if len(a.asked) != c.asked {
				t.Errorf("asked %d times: %q", len(a.asked), a.asked)
			}
		})
	}
}

func TestMissingPermissionsReturnsErrors(t *testing.T) {
	a := &authorizer{fail: errors.New("gone")}
	if _, err := apply.MissingPermissions(t.Context(), a, []apply.RequiredPermission{{Resource: deployments}}, 0); !errors.Is(err, a.fail) {
		t.Errorf("got %v", err)
	}
}

// The answer for the resource is no, and then the connection breaks: the many objects
// are not asked about one by one.
func TestMissingPermissionsStopsAtTheFirstError(t *testing.T) {
	a := &authorizer{fail: errors.New("gone"), answers: 1}
	var needs []apply.RequiredPermission
	for i := range 1000 {
		needs = append(needs, apply.RequiredPermission{Resource: deployments, Namespace: fmt.Sprintf("ns-%d", i), Name: "web"})
	}
	if _, err := apply.MissingPermissions(t.Context(), a, needs, 4); !errors.Is(err, a.fail) || len(a.asked) > 1+2*4 {
		t.Errorf("asked %d times: %v", len(a.asked), err)
	}
}
