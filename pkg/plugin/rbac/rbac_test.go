package rbac_test

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/rbac"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/redact"
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
		mapping("autoscaling", "HorizontalPodAutoscaler", "horizontalpodautoscalers", meta.RESTScopeNamespace),
		mapping("rbac.authorization.k8s.io", "ClusterRole", "clusterroles", meta.RESTScopeRoot),
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
	matched, inShop, applying := []engine.Selection{deployments}, rbac.Run{Namespace: "shop"}, rbac.Run{Purpose: rbac.Apply}
	cases := []struct {
		name string
		rule engine.Description
		run  rbac.Run
		want []string
	}{
		{"what is matched is read, one by one too", engine.Description{Matches: []engine.Selection{deployments}}, rbac.Run{}, []string{": get,list namespaces", ": get,list deployments"}},
		{"in a namespace", engine.Description{Matches: []engine.Selection{deployments}}, inShop, []string{"shop: get namespaces shop", "shop: get,list deployments"}},
		{"kinds without namespaces are left out of one", engine.Description{Matches: []engine.Selection{nodes, configMaps}}, inShop, []string{"shop: get,list configmaps", "shop: get namespaces shop"}},
		{"a type that was typed is listed alone", engine.Description{Matches: []engine.Selection{deployments, nodes}}, rbac.Run{Only: []engine.ObjectKey{deployment("")}}, []string{": get,list namespaces", ": list deployments"}},
		{"an object that was named is read, wherever it is", engine.Description{Matches: []engine.Selection{deployments}}, rbac.Run{Only: []engine.ObjectKey{deployment("web")}}, []string{": get,list namespaces", ": get,list deployments web"}},
		{"in a namespace it is got", engine.Description{Matches: []engine.Selection{deployments}}, rbac.Run{Namespace: "shop", Only: []engine.ObjectKey{deployment("web")}}, []string{"shop: get namespaces shop", "shop: get deployments web"}},
		{
			"what is explained need not be matched, and all that is matched may trigger a rule that acts on it",
			engine.Description{Existing: engine.ByTrigger, Matches: []engine.Selection{configMaps}},
			rbac.Run{Namespace: "shop", Purpose: rbac.Explain, Only: []engine.ObjectKey{deployment("web")}},
			[]string{"shop: list configmaps", "shop: get namespaces shop", "shop: get,list deployments web"},
		},
		{
			"without such rules nothing else is read",
			engine.Description{Matches: []engine.Selection{configMaps}, Asks: []engine.Ask{{Of: engine.AskObjects, Objects: named}}},
			rbac.Run{Namespace: "shop", Purpose: rbac.Explain, Only: []engine.ObjectKey{deployment("web")}},
			[]string{"shop: get namespaces shop", "shop: get deployments web"},
		},
		{"changes are read again and patched", engine.Description{Matches: []engine.Selection{nodes}, Changes: []string{"metadata.labels.a"}}, applying, []string{": get,list namespaces", ": get,list,patch nodes"}},
		{"one object alone", engine.Description{Matches: []engine.Selection{deployments}, Changes: []string{"a"}}, rbac.Run{Namespace: "shop", Purpose: rbac.Apply, Only: []engine.ObjectKey{deployment("web")}}, []string{"shop: get namespaces shop", "shop: get,patch deployments web"}},
		{"the status goes through its own endpoint", engine.Description{Matches: []engine.Selection{nodes}, Changes: []string{"status.phase"}}, applying, []string{": get,list namespaces", ": get,list nodes", ": patch nodes/status"}},
		{"a named object is got", engine.Description{Matches: matched, Asks: []engine.Ask{{Of: engine.AskObjects, Objects: named}}}, rbac.Run{}, []string{": get configmaps owners", ": get,list namespaces", ": get,list deployments"}},
		{"in its own namespace", engine.Description{Matches: matched, Asks: []engine.Ask{{Of: engine.AskObjects, Objects: named}}}, inShop, []string{"platform: get configmaps owners", "shop: get namespaces shop", "shop: get,list deployments"}},
		{"a computed name opens them", engine.Description{Matches: matched, Asks: []engine.Ask{{Of: engine.AskObjects, Objects: computed}}}, rbac.Run{}, []string{": get configmaps", ": get,list namespaces", ": get,list deployments"}},
		{"a path is read", asking("GET", "/apis/apps/v1/namespaces/*/replicasets"), rbac.Run{}, []string{": get,list namespaces", ": get,list deployments", ": list replicasets"}},
		{"a path of no resource", asking("GET", "/version"), rbac.Run{}, []string{": get,list namespaces", ": get,list deployments", ": get /version"}},
		{"a path that is never asked", asking("GET", "/api/v1/namespaces/a/pods/b/exec"), rbac.Run{}, []string{": get,list namespaces", ": get,list deployments"}},
		{"others are asked about", asking("POST", "/apis/authorization.k8s.io/v1/subjectaccessreviews"), rbac.Run{}, []string{": get,list namespaces", ": get,list deployments", ": create subjectaccessreviews"}},
		{"everybody may ask about themselves", asking("POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"), rbac.Run{}, []string{": get,list namespaces", ": get,list deployments"}},
		{
			"targets are written through their subresource, and events created",
			engine.Description{Existing: engine.ByTrigger, Matches: []engine.Selection{configMaps}, Targets: []engine.Selection{scale}},
			applying,
			[]string{": get,list configmaps", ": create events", ": get,list namespaces", ": get,patch deployments/scale web"},
		},
		{
			"a rule that nothing in the namespace triggers needs no permission",
			engine.Description{Existing: engine.ByTrigger, Matches: []engine.Selection{named}, Targets: []engine.Selection{deployments}},
			rbac.Run{Namespace: "shop", Purpose: rbac.Apply},
			[]string{"shop: get namespaces shop"},
		},
		{"autoscalers are looked at where they may disagree", engine.Description{Matches: matched, Changes: []string{"spec.replicas"}}, inShop, []string{"shop: get namespaces shop", "shop: get,list deployments", "shop: list horizontalpodautoscalers"}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			c.run.Rules, c.run.Served = []engine.Description{c.rule}, served()
			c.run.HasStatus = func(schema.GroupVersionKind) bool { return true }
			c.run.Reads = func(schema.GroupKind) bool { return false }
			needs, _, err := c.run.Needs()
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, rulesOf(rbac.Roles("r", needs, c.run.Namespace))); diff != "" {
				t.Error("(-want +got):\n" + diff)
			}
		})
	}
}

// deployment is what a user means by deployment/NAME.
func deployment(name string) engine.ObjectKey {
	return engine.ObjectKey{GroupKind: schema.GroupKind{Group: "apps", Kind: "Deployment"}, Name: name}
}

// asking is a rule that makes a request of the API server.
func asking(method, path string) engine.Description {
	return engine.Description{Matches: []engine.Selection{deployments}, Asks: []engine.Ask{{Of: engine.AskAPI, Method: method, Path: path}}}
}

// Who may patch these kinds decides what others may do: a wildcard is not to hand
// that out unseen.
func TestNeedsNotesWildcards(t *testing.T) {
	everything := engine.Selection{Group: "*", Kind: "*"}
	roles := engine.Selection{Group: "rbac.authorization.k8s.io", Kind: "ClusterRole"}
	for _, c := range []struct {
		name    string
		matches engine.Selection
		purpose rbac.Purpose
		told    bool
	}{
		{"a wildcard, to apply", everything, rbac.Apply, true},
		{"a wildcard, to look at", everything, rbac.Preview, false},
		{"the kind itself, to apply", roles, rbac.Apply, false},
	} {
		run := rbac.Run{
			Rules:  []engine.Description{{Matches: []engine.Selection{c.matches}, Changes: []string{"metadata.labels.a"}}},
			Served: served(), Purpose: c.purpose, Reads: func(schema.GroupKind) bool { return false },
		}
		_, notes, err := run.Needs()
		if err != nil {
			t.Fatal(err)
		}
		if told := strings.Contains(strings.Join(notes, "\n"), "patching clusterroles.rbac.authorization.k8s.io"); told != c.told {
			t.Errorf("%s: told %t, want %t: %q", c.name, told, c.told, notes)
		}
	}
}

func TestNeedsOfInputs(t *testing.T) {
	exceptions := schema.GroupVersion{Group: "kyverno.io", Version: "v2"}
	run := rbac.Run{
		Served: append(
			served(),
			&meta.RESTMapping{GroupVersionKind: exceptions.WithKind("PolicyException"), Resource: exceptions.WithResource("policyexceptions"), Scope: meta.RESTScopeNamespace},
			&meta.RESTMapping{GroupVersionKind: exceptions.WithKind("ClusterPolicy"), Resource: exceptions.WithResource("clusterpolicies"), Scope: meta.RESTScopeRoot},
		),
		Reads: func(gk schema.GroupKind) bool { return gk.Kind == "PolicyException" || gk.Kind == "ConfigMap" },
	}
	needs, _, err := run.Needs()
	if err != nil {
		t.Fatal(err)
	}
	want := []string{": get configmaps kyverno", ": get,list namespaces", ": list policyexceptions"}
	if diff := cmp.Diff(want, rulesOf(rbac.Roles("r", needs, ""))); diff != "" {
		t.Error("(-want +got):\n" + diff)
	}
}

// What is written with comments reads as what is written without.
func TestPrintYAMLAndJSONAgree(t *testing.T) {
	const hostile = "\x1b[2J\u009b\u202e\x7f\n::error::x"
	roles := rbac.Roles("it's: # a name"+hostile, []rbac.Need{
		{Verb: "list", Group: "apps", Resource: "deployments", Namespace: "shop", Why: "a\nb" + hostile},
		{Verb: "get", Path: "/version", Why: "c"},
	}, "shop")
	var text, list strings.Builder
	if err := errors.Join(rbac.PrintYAML(&text, roles, []string{"a note" + hostile}), rbac.PrintJSON(&list, roles)); err != nil {
		t.Fatal(err)
	}
	for _, printed := range []string{text.String(), list.String()} {
		if strings.ContainsFunc(printed, func(r rune) bool { return r != '\n' && redact.Harmful(r) }) {
			t.Errorf("a control character in %q", printed)
		}
	}
	var fromJSON struct{ Items []rbacv1.Role }
	if err := yaml.Unmarshal([]byte(list.String()), &fromJSON); err != nil {
		t.Fatal(err)
	}
	documents := strings.Split(text.String(), "---\n")
	if len(documents) != 2 || len(fromJSON.Items) != 2 || !strings.HasPrefix(text.String(), "# a note") {
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

// What is printed may be put into a shell's here-document, where it must not be expanded.
func TestPrintedRolesActOnNoShell(t *testing.T) {
	for _, text := range []string{"$(touch x)", "`touch x`", "${HOME}", "$HOME", `\$(touch x)`, "a\n$(touch x)\nEOF"} {
		roles := rbac.Roles(text, []rbac.Need{{Verb: "get", Group: text, Resource: text, Name: text, Why: text, Namespace: text}}, text)
		var yaml, json bytes.Buffer
		if err := errors.Join(rbac.PrintYAML(&yaml, roles, []string{text}), rbac.PrintJSON(&json, roles)); err != nil {
			t.Fatal(err)
		}
		for _, printed := range []string{yaml.String(), json.String()} {
			if strings.ContainsAny(printed, "$`") || strings.Contains(printed, "\nEOF") {
				t.Errorf("%q acts on a shell in\n%s", text, printed)
			}
		}
	}
}
