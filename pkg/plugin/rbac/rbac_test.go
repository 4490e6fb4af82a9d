package rbac_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/rbac"
)

func served() []*meta.RESTMapping {
	mapping := func(group, kind, resource string, scope meta.RESTScope) *meta.RESTMapping {
		gv := schema.GroupVersion{Group: group, Version: "v1"}
		return &meta.RESTMapping{GroupVersionKind: gv.WithKind(kind), Resource: gv.WithResource(resource), Scope: scope}
	}
	return []*meta.RESTMapping{
		mapping("", "ConfigMap", "configmaps", meta.RESTScopeNamespace),
		mapping("", "Node", "nodes", meta.RESTScopeRoot),
		mapping("apps", "Deployment", "deployments", meta.RESTScopeNamespace),
		mapping("kyverno.io", "PolicyException", "policyexceptions", meta.RESTScopeNamespace),
	}
}

var (
	configMaps  = engine.Selection{Version: "v1", Kind: "ConfigMap"}
	nodes       = engine.Selection{Version: "v1", Kind: "Node"}
	deployments = engine.Selection{Group: "*", Version: "*", Kind: "Deployment"}
)

// rulesOf writes roles shortly: "ROLE: VERBS RESOURCES NAMES", namespaces left out.
func rulesOf(roles []rbac.Role) []string {
	var out []string
	for _, role := range roles {
		for _, r := range role.Rules {
			what := append(append([]string{}, r.Resources...), r.NonResourceURLs...)
			line := role.Namespace + ": " + strings.Join(r.Verbs, ",") + " " + strings.Join(what, ",") + " " + strings.Join(r.ResourceNames, ",")
			out = append(out, strings.TrimSpace(line))
		}
	}
	return out
}

func TestNeeds(t *testing.T) {
	named := configMaps
	named.Namespace, named.Name = "platform", "owners"
	computed := named
	computed.Name = engine.Computed
	scale := deployments
	scale.Subresource, scale.Namespace, scale.Name = "scale", engine.Computed, "web"
	cases := []struct {
		name      string
		rule      engine.Description
		applies   bool
		namespace string
		want      []string
	}{
		{"what is matched is listed", engine.Description{Matches: []engine.Selection{deployments}}, false, "", []string{": get,list namespaces", ": list deployments"}},
		{"in a namespace", engine.Description{Matches: []engine.Selection{deployments}}, false, "shop", []string{"shop: get namespaces shop", "shop: list deployments"}},
		{"kinds without namespaces are left out of one", engine.Description{Matches: []engine.Selection{nodes, configMaps}}, false, "shop", []string{"shop: list configmaps", "shop: get namespaces shop"}},
		{"changes are read again and patched", engine.Description{Matches: []engine.Selection{nodes}, Changes: []string{"metadata.labels.a"}}, true, "", []string{": get,list namespaces", ": get,list,patch nodes"}},
		{"the status goes through its own endpoint", engine.Description{Matches: []engine.Selection{nodes}, Changes: []string{"status.phase"}}, true, "", []string{": get,list namespaces", ": get,list nodes", ": patch nodes/status"}},
		{"a named object is got", engine.Description{Asks: []engine.Ask{{Of: engine.AskObjects, Objects: named}}}, false, "", []string{": get configmaps owners", ": get,list namespaces"}},
		{"in its own namespace", engine.Description{Asks: []engine.Ask{{Of: engine.AskObjects, Objects: named}}}, false, "shop", []string{"platform: get configmaps owners", "shop: get namespaces shop"}},
		{"a computed name opens them", engine.Description{Asks: []engine.Ask{{Of: engine.AskObjects, Objects: computed}}}, false, "", []string{": get configmaps", ": get,list namespaces"}},
		{"a path is read", engine.Description{Asks: []engine.Ask{{Of: engine.AskAPI, Method: "GET", Path: "/apis/apps/v1/namespaces/*/deployments"}}}, false, "", []string{": get,list namespaces", ": list deployments"}},
		{"a path of no resource", engine.Description{Asks: []engine.Ask{{Of: engine.AskAPI, Method: "GET", Path: "/version"}}}, false, "", []string{": get,list namespaces", ": get /version"}},
		{"a path that is never asked", engine.Description{Asks: []engine.Ask{{Of: engine.AskAPI, Method: "GET", Path: "/api/v1/namespaces/a/pods/b/exec"}}}, false, "", []string{": get,list namespaces"}},
		{"others are asked about", engine.Description{Asks: []engine.Ask{{Of: engine.AskAccess, Method: "POST", Path: "/apis/authorization.k8s.io/v1/subjectaccessreviews"}}}, false, "", []string{": get,list namespaces", ": create subjectaccessreviews"}},
		{"everybody may ask about themselves", engine.Description{Asks: []engine.Ask{{Of: engine.AskAccess, Method: "POST", Path: "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"}}}, false, "", []string{": get,list namespaces"}},
		{
			"targets are written through their subresource, and events told",
			engine.Description{Existing: engine.ByTrigger, Matches: []engine.Selection{configMaps}, Targets: []engine.Selection{scale}},
			true, "",
			[]string{": list configmaps", ": create events", ": get,list namespaces", ": get,patch deployments/scale web"},
		},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			run := rbac.Run{
				Rules: []engine.Description{c.rule}, Served: served(), Applies: c.applies, Namespace: c.namespace,
				HasStatus: func(schema.GroupVersionKind) bool { return true }, Reads: func(schema.GroupKind) bool { return false },
			}
			needs, _, err := run.Needs()
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, rulesOf(rbac.Roles("r", needs, c.namespace))); diff != "" {
				t.Error("(-want +got):\n" + diff)
			}
		})
	}
}

func TestInputsOfTheClusterAreRead(t *testing.T) {
	run := rbac.Run{Served: served(), Reads: func(gk schema.GroupKind) bool { return gk.Group == "kyverno.io" || gk.Kind == "ConfigMap" }}
	needs, _, err := run.Needs()
	if err != nil {
		t.Fatal(err)
	}
	want := []string{": get,list namespaces", ": list policyexceptions"}
	if diff := cmp.Diff(want, rulesOf(rbac.Roles("r", needs, ""))); diff != "" {
		t.Error("(-want +got):\n" + diff)
	}
}

// What is written with comments reads as what is written without.
func TestYAMLAndJSONSayTheSame(t *testing.T) {
	roles := rbac.Roles("it's: # a name", []rbac.Need{
		{Verb: "list", Group: "apps", Resource: "deployments", Namespace: "shop", Why: "a\nb"},
		{Verb: "get", Path: "/version", Why: "c"},
	}, "shop")
	var text, list strings.Builder
	if err := errors.Join(rbac.PrintYAML(&text, roles, []string{"a note"}), rbac.PrintJSON(&list, roles)); err != nil {
		t.Fatal(err)
	}
	var fromJSON struct{ Items []rbacv1.Role }
	if err := yaml.Unmarshal([]byte(list.String()), &fromJSON); err != nil {
		t.Fatal(err)
	}
	documents := strings.Split(text.String(), "---\n")
	if len(documents) != 2 || len(fromJSON.Items) != 2 || !strings.HasPrefix(text.String(), "# a note\n") {
		t.Fatalf("%s\n%s", text.String(), list.String())
	}
	for i, document := range documents {
		var fromYAML rbacv1.Role
		if err := yaml.UnmarshalStrict([]byte(document), &fromYAML); err != nil {
			t.Fatalf("%v\n%s", err, document)
		}
		if diff := cmp.Diff(fromJSON.Items[i], fromYAML); diff != "" {
			t.Error("(-JSON +YAML):\n" + diff)
		}
	}
}

func TestMissing(t *testing.T) {
	forbidden := func(resource, name string) error {
		return apierrors.NewForbidden(schema.GroupResource{Group: "apps", Resource: resource}, name, errors.New("no"))
	}
	for want, err := range map[string]error{
		"list deployments.apps":          &engine.UnreadableError{What: "deployments.apps in namespace shop", Err: forbidden("deployments", "web")},
		"get deployments.apps/web":       forbidden("deployments", "web"),
		"create localaccessreviews.apps": forbidden("localaccessreviews", ""),
		"":                               errors.New("forbidden"),
	} {
		if got := rbac.Missing(err); got != want {
			t.Errorf("%v: %q, want %q", err, got, want)
		}
	}
}
