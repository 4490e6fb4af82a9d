package wording_test

import (
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/wording"
)

func deploymentKey(namespace, name string) engine.ObjectKey {
	return engine.ObjectKey{GroupKind: schema.GroupKind{Group: "apps", Kind: "Deployment"}, Namespace: namespace, Name: name}
}

func TestWithoutName(t *testing.T) {
	for text, want := range map[string]string{
		`deployments.apps "web" is forbidden: quota`:                    `deployments.apps "..." is forbidden: quota`,
		"image of shop/web is not signed":                               "image of ... is not signed",
		"Deployment web and deployment/web, 'web'":                      "Deployment ... and deployment/..., '...'",
		"spec.web: Invalid value":                                       "spec.web: Invalid value", // another web
		"shop/web-2 and myshop/web":                                     "shop/web-2 and myshop/...",
		`validation of "shop/web" failed`:                               `validation of "..." failed`,
		"GET /apis/apps/v1/namespaces/shop/deployments/web: 404, /webs": "GET /apis/apps/v1/namespaces/shop/deployments/...: 404, /webs",
		"nothing is said of the object":                                 "nothing is said of the object",
		`denied: "web" "web-1" shop/web shop/web-1 web`:                 `denied: "..." "web-1" ... shop/web-1 web`,
	} {
		if got := wording.WithoutName(text, deploymentKey("shop", "web")); got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
	if got := wording.WithoutName("text", engine.ObjectKey{}); got != "text" {
		t.Errorf("got %q", got)
	}
}

func TestReasons(t *testing.T) {
	var r wording.Reasons
	for i := range 50 {
		key := deploymentKey("shop", fmt.Sprintf("web-%d", i))
		r.Add(key, fmt.Sprintf("deployments.apps %q is forbidden", key.Name))
	}
	r.Add(deploymentKey("shop", "db"), `deployments.apps "db" is locked`)
	want := []string{
		`50 apps/Deployment shop/web-0, apps/Deployment shop/web-1, apps/Deployment shop/web-2 and 47 more: deployments.apps "..." is forbidden`,
		`1 apps/Deployment shop/db: deployments.apps "db" is locked`,
	}
	for i, reason := range r.All() {
		if got := fmt.Sprintf("%d %s: %s", reason.Count, reason.Names(), reason.Text); i >= len(want) || got != want[i] {
			t.Errorf("got %s", got)
		}
	}
	if len(r.All()) != len(want) {
		t.Errorf("%d reasons", len(r.All()))
	}
}
