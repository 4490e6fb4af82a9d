package apply_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
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
	question := fmt.Sprintf("%s %s %s", strings.TrimSuffix(strings.TrimSuffix(r.Resource+"."+r.Group, ".")+"/"+r.Subresource, "/"), r.Namespace, r.Name)
	a.mu.Lock()
	defer a.mu.Unlock()
	a.asked = append(a.asked, question)
	if len(a.asked) > a.answers && a.fail != nil {
		return engine.AccessDecision{}, a.fail
	}
	return engine.AccessDecision{Allowed: slices.Contains(a.allowed, question)}, nil
}

func deployment(subresource, namespace, name string) apply.Permission {
	return apply.Permission{Group: "apps", Resource: "deployments", Subresource: subresource, Namespace: namespace, Name: name}
}

func TestMissingPermissions(t *testing.T) {
	needs := []apply.Permission{
		deployment("scale", "shop", "web"),
		deployment("", "shop", "web"),
		deployment("", "shop", "db"),
		deployment("", "bank", "db"),
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
			{Permission: deployment("", "bank", ""), Names: []string{"db"}},
			{Permission: deployment("", "shop", ""), Names: []string{"web", "db"}},
			{Permission: deployment("scale", "shop", ""), Names: []string{"web"}},
		}, 9},
		"one by name": {[]string{"deployments.apps  ", "deployments.apps/scale shop web"}, nil, 4},
		"not the subresource": {[]string{"deployments.apps  "}, []apply.MissingPermission{
			{Permission: deployment("scale", "shop", ""), Names: []string{"web"}},
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

// The answer for the resource is no, and then the connection breaks: the many objects
// are not asked about one by one.
func TestMissingPermissionsStopsAtTheFirstError(t *testing.T) {
	a := &authorizer{fail: errors.New("gone"), answers: 1}
	var needs []apply.Permission
	for i := range 1000 {
		needs = append(needs, deployment("", fmt.Sprintf("ns-%d", i), "web"))
	}
	if _, err := apply.MissingPermissions(t.Context(), a, needs, 4); !errors.Is(err, a.fail) || len(a.asked) > 1+2*4 {
		t.Errorf("asked %d times: %v", len(a.asked), err)
	}
}
