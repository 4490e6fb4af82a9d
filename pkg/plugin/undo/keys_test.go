package undo_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/applyconfigurations"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/yaml"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/undo"
)

const deployment = `{apiVersion: apps/v1, kind: Deployment,
  metadata: {name: web, namespace: shop, uid: u, resourceVersion: "7", labels: {team: a}, managedFields: [
    {manager: kubectl-create, operation: Update, apiVersion: apps/v1, fieldsV1: {"f:spec": {}}},
    {manager: kubectl-mutate, operation: Apply, apiVersion: VERSION, fieldsV1: FIELDS}]},
  spec: {template: {spec: {containers: [{name: app, image: a, env: [{name: X, value: z}]}, {name: side, image: b}]}}}}`

func TestWithoutKeys(t *testing.T) {
	const identity = "{apiVersion: apps/v1, kind: Deployment, metadata: {name: web, namespace: shop, uid: u, resourceVersion: '7'"
	for _, tt := range []struct{ name, fields, want string }{
		{
			"an element of which nothing but the key is owned",
			`{"f:spec": {"f:template": {"f:spec": {"f:containers": {'k:{"name":"app"}': {".": {}, "f:name": {}}}}}}}`,
			identity + "}}",
		},
		{
			"beside an element and a label that are still ours",
			`{"f:metadata": {"f:labels": {"f:team": {}}}, "f:spec": {"f:template": {"f:spec": {"f:containers": {
			  'k:{"name":"app"}': {".": {}, "f:name": {}}, 'k:{"name":"side"}': {".": {}, "f:name": {}, "f:image": {}}}}}}}`,
			identity + ", labels: {team: a}}, spec: {template: {spec: {containers: [{name: side, image: b}]}}}}",
		},
		{
			"an element in which something deeper is ours",
			`{"f:spec": {"f:template": {"f:spec": {"f:containers": {'k:{"name":"app"}': {".": {}, "f:name": {},
			  "f:env": {'k:{"name":"X"}': {".": {}, "f:name": {}, "f:value": {}}}}}}}}}`,
			"",
		},
		{"nothing but fields", `{"f:metadata": {"f:labels": {"f:team": {}}}}`, ""},
		{
			"a field that is gone",
			`{"f:metadata": {"f:labels": {"f:gone": {}}}, "f:spec": {"f:template": {"f:spec": {"f:containers": {'k:{"name":"app"}': {".": {}, "f:name": {}}}}}}}`,
			"",
		},
		{
			"a map that others have filled",
			`{"f:metadata": {"f:labels": {}}, "f:spec": {"f:template": {"f:spec": {"f:containers": {'k:{"name":"app"}': {".": {}, "f:name": {}}}}}}}`,
			"",
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			checkReleased(t, deploymentWith("apps/v1", tt.fields), tt.want)
		})
	}
	t.Run("in another version", func(t *testing.T) {
		checkReleased(t, deploymentWith("apps/v1beta1", `{"f:spec": {"f:template": {"f:spec": {"f:containers": {'k:{"name":"app"}': {".": {}, "f:name": {}}}}}}}`), "")
	})
}

func deploymentWith(version, fields string) string {
	return strings.NewReplacer("VERSION", version, "FIELDS", fields).Replace(deployment)
}

func checkReleased(t *testing.T, live, want string) {
	t.Helper()
	got, err := undo.WithoutKeys(object(t, []byte(live)), "kubectl-mutate", applyconfigurations.NewTypeConverter(scheme.Scheme))
	if err != nil {
		t.Fatal(err)
	}
	var wanted, sent any
	if err := yaml.Unmarshal([]byte(want), &wanted); err != nil {
		t.Fatal(err)
	}
	if err := yaml.Unmarshal(got, &sent); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(wanted, sent); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}
