package permission_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/kubectl-mutate/kubectl-mutate/internal/hostile"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/permission"
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
func rulesOf(roles []permission.Role) []string {
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

// needsCase is a rule, and the permissions that a run of it needs.
type needsCase struct {
	name string
	rule engine.Description
	run  permission.Run
	want []string
}

func checkNeeds(t *testing.T, cases []needsCase) {
	t.Helper()
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			c.run.Rules, c.run.Served = []engine.Description{c.rule}, served()
			c.run.HasStatus = func(schema.GroupVersionKind) bool { return true }
			c.run.Reads = func(schema.GroupKind) bool { return false }
			needs, _, err := c.run.Needs()
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, rulesOf(permission.Roles("r", needs, c.run.Namespaces, nil))); diff != "" {
				t.Error("(-want +got):\n" + diff)
			}
		})
	}
}

func TestNeeds(t *testing.T) {
	named := configMaps
	named.Namespace, named.Name = "platform", "owners"
	computed := named
	computed.Name = engine.Computed
	matched, inShop, applying := []engine.Selection{deployments}, permission.Run{Namespaces: []string{"shop"}}, permission.Run{Purpose: permission.Apply}
	checkNeeds(t, []needsCase{
		{"what is matched is read, one by one too", engine.Description{Matches: []engine.Selection{deployments}}, permission.Run{}, []string{": get,list namespaces", ": get,list deployments"}},
		{"that of a Job is listed", engine.Description{Matches: []engine.Selection{deployments}}, permission.Run{Fixed: true}, []string{": get,list namespaces", ": list deployments"}},
		{"and got again to be changed", engine.Description{Matches: []engine.Selection{nodes}, Changes: []string{"a"}}, permission.Run{Fixed: true, Purpose: permission.Apply}, []string{": get,list namespaces", ": get,list,patch nodes"}},
		{"in a namespace", engine.Description{Matches: []engine.Selection{deployments}}, inShop, []string{"shop: get namespaces shop", "shop: get,list deployments"}},
		{"kinds without namespaces are left out of one", engine.Description{Matches: []engine.Selection{nodes, configMaps}}, inShop, []string{"shop: get,list configmaps", "shop: get namespaces shop"}},
		{"a type that was typed is listed alone", engine.Description{Matches: []engine.Selection{deployments, nodes}}, permission.Run{Only: []engine.ObjectKey{deployment("")}}, []string{": get,list namespaces", ": list deployments"}},
		{"an object that was named is read, wherever it is", engine.Description{Matches: []engine.Selection{deployments}}, permission.Run{Only: []engine.ObjectKey{deployment("web")}}, []string{": get,list namespaces", ": get,list deployments web"}},
		{"in a namespace it is got", engine.Description{Matches: []engine.Selection{deployments}}, permission.Run{Namespaces: []string{"shop"}, Only: []engine.ObjectKey{deployment("web")}}, []string{"shop: get namespaces shop", "shop: get deployments web"}},
		{
			"what is explained need not be matched, and all that is matched may trigger a rule that acts on it",
			engine.Description{Existing: engine.ByTrigger, Matches: []engine.Selection{configMaps}},
			permission.Run{Namespaces: []string{"shop"}, Purpose: permission.Explain, Only: []engine.ObjectKey{deployment("web")}},
			[]string{": list configmaps", ": list namespaces", "shop: get namespaces shop", "shop: get,list deployments web"},
		},
		{
			"without such rules nothing else is read",
			engine.Description{Matches: []engine.Selection{configMaps}, Asks: []engine.Ask{{Of: engine.AskObjects, Objects: named}}},
			permission.Run{Namespaces: []string{"shop"}, Purpose: permission.Explain, Only: []engine.ObjectKey{deployment("web")}},
			[]string{"shop: get namespaces shop", "shop: get deployments web"},
		},
		{"changes are read again and patched", engine.Description{Matches: []engine.Selection{nodes}, Changes: []string{"metadata.labels.a"}}, applying, []string{": get,list namespaces", ": get,list,patch nodes"}},
		{"one object alone", engine.Description{Matches: []engine.Selection{deployments}, Changes: []string{"a"}}, permission.Run{Namespaces: []string{"shop"}, Purpose: permission.Apply, Only: []engine.ObjectKey{deployment("web")}}, []string{"shop: get namespaces shop", "shop: get,patch deployments web"}},
		{"the status goes through its own endpoint", engine.Description{Matches: []engine.Selection{nodes}, Changes: []string{"status.phase"}}, applying, []string{": get,list namespaces", ": get,list nodes", ": patch nodes/status"}},
		{"a named object is got", engine.Description{Matches: matched, Asks: []engine.Ask{{Of: engine.AskObjects, Objects: named}}}, permission.Run{}, []string{": get configmaps owners", ": get,list namespaces", ": get,list deployments"}},
		{"in its own namespace", engine.Description{Matches: matched, Asks: []engine.Ask{{Of: engine.AskObjects, Objects: named}}}, inShop, []string{"platform: get configmaps owners", "shop: get namespaces shop", "shop: get,list deployments"}},
		{"a computed name opens them", engine.Description{Matches: matched, Asks: []engine.Ask{{Of: engine.AskObjects, Objects: computed}}}, permission.Run{}, []string{": get configmaps", ": get,list namespaces", ": get,list deployments"}},
		{"a path is read", asking("GET", "/apis/apps/v1/namespaces/*/replicasets"), permission.Run{}, []string{": get,list namespaces", ": get,list deployments", ": list replicasets"}},
		{"a path of no resource", asking("GET", "/version"), permission.Run{}, []string{": get,list namespaces", ": get,list deployments", ": get /version"}},
		{"a path that is never asked", asking("GET", "/api/v1/namespaces/a/pods/b/exec"), permission.Run{}, []string{": get,list namespaces", ": get,list deployments"}},
		{"others are asked about", asking("POST", "/apis/authorization.k8s.io/v1/subjectaccessreviews"), permission.Run{}, []string{": get,list namespaces", ": get,list deployments", ": create subjectaccessreviews"}},
		{"everybody may ask about themselves", asking("POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"), permission.Run{}, []string{": get,list namespaces", ": get,list deployments"}},
		{"autoscalers are looked at where they may disagree", engine.Description{Matches: matched, Changes: []string{"spec.replicas"}}, inShop, []string{"shop: get namespaces shop", "shop: get,list deployments", "shop: list horizontalpodautoscalers"}},
	})
}

func TestNeedsOfTargets(t *testing.T) {
	named := configMaps
	named.Namespace, named.Name = "platform", "owners"
	scale := deployments
	scale.Subresource, scale.Namespace, scale.Name = "scale", engine.Computed, "web"
	checkNeeds(t, []needsCase{
		{
			"targets are written through their subresource, and events created",
			engine.Description{Existing: engine.ByTrigger, Matches: []engine.Selection{configMaps}, Targets: []engine.Selection{scale}},
			permission.Run{Purpose: permission.Apply},
			[]string{": list configmaps", ": create events", ": get,list namespaces", ": get,patch deployments/scale web"},
		},
		{
			"what an update of a subresource triggers is listed, too",
			engine.Description{Existing: engine.ByTrigger, Matches: []engine.Selection{{Kind: "ConfigMap", Subresource: "status"}}, Targets: []engine.Selection{named}},
			permission.Run{},
			[]string{": list configmaps", ": get configmaps owners", ": get,list namespaces"},
		},
		{
			"triggers are listed where the rule says, targets in the namespace",
			engine.Description{Existing: engine.ByTrigger, Matches: []engine.Selection{named}, Targets: []engine.Selection{deployments}},
			permission.Run{Namespaces: []string{"shop"}, Purpose: permission.Apply},
			[]string{": list namespaces", "platform: list configmaps owners", "shop: create events", "shop: get namespaces shop", "shop: get,list,patch deployments"},
		},
		{
			"a target that was named is got",
			engine.Description{Existing: engine.ByTrigger, Matches: []engine.Selection{configMaps}, Targets: []engine.Selection{deployments}},
			permission.Run{Namespaces: []string{"shop"}, Only: []engine.ObjectKey{deployment("web")}},
			[]string{": list configmaps", ": list namespaces", "shop: get namespaces shop", "shop: get deployments web"},
		},
		{
			"a rule that changes nothing in the namespace is evaluated there alone",
			engine.Description{Existing: engine.ByTrigger, Matches: []engine.Selection{configMaps}, Targets: []engine.Selection{named}},
			permission.Run{Namespaces: []string{"shop"}, Purpose: permission.Apply},
			[]string{"shop: list configmaps", "shop: get namespaces shop"},
		},
	})
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
		purpose permission.Purpose
		told    bool
	}{
		{"a wildcard, to apply", everything, permission.Apply, true},
		{"a wildcard, to look at", everything, permission.Preview, false},
		{"the kind itself, to apply", roles, permission.Apply, false},
	} {
		run := permission.Run{
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
	run := permission.Run{
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
	if diff := cmp.Diff(want, rulesOf(permission.Roles("r", needs, nil, nil))); diff != "" {
		t.Error("(-want +got):\n" + diff)
	}
}

// hostileRoles are roles all of whose strings are one.
func hostileRoles(text string) []any {
	var out []any
	for _, role := range permission.Roles(text, []permission.Need{
		{Verb: "list", Group: text, Resource: text, Name: text, Namespace: text, Why: text},
		{Verb: text, Path: text, Why: "c"},
	}, []string{text}, []rbacv1.Subject{
		{Kind: rbacv1.GroupKind, APIGroup: rbacv1.GroupName, Name: text},
		{Kind: rbacv1.ServiceAccountKind, Namespace: text, Name: text},
	}) {
		out = append(out, role)
	}
	return out
}

// roleOrBinding is what is printed.
type roleOrBinding struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Rules             []rbacv1.PolicyRule `json:"rules,omitempty"`
	RoleRef           *rbacv1.RoleRef     `json:"roleRef,omitempty"`
	Subjects          []rbacv1.Subject    `json:"subjects,omitempty"`
}

// What is written with comments reads as what is written without, whatever is in it, and as what was meant.
func TestPrintYAMLAndJSONAgree(t *testing.T) {
	for _, of := range hostile.Texts() {
		roles := hostileRoles(of.Text)
		var text, list strings.Builder
		if err := errors.Join(permission.PrintYAML(&text, roles, []string{of.Text, "a note"}), permission.PrintJSON(&list, roles)); err != nil {
			t.Fatal(err)
		}
		var fromJSON struct{ Items []roleOrBinding }
		err := errors.Join(hostile.Terminal(text.String()+list.String()), hostile.Runner(text.String()), json.Unmarshal([]byte(list.String()), &fromJSON))
		documents := strings.Split(text.String(), "\n---\n")
		if err != nil || len(documents) != 2*len(roles) || len(fromJSON.Items) != 2*len(roles) {
			t.Errorf("%s %.80q: %v\n%s\n%s", of.Class, of.Text, err, text.String(), list.String())
			continue
		}
		for i, document := range documents {
			var fromYAML roleOrBinding
			if err := yaml.UnmarshalStrict([]byte(document), &fromYAML); err != nil {
				t.Errorf("%s %.80q: %v\n%s", of.Class, of.Text, err, document)
			}
			if diff := cmp.Diff(fromJSON.Items[i], fromYAML); diff != "" {
				t.Error("(-JSON +YAML):\n" + diff)
			}
			if meant := strings.ToValidUTF8(of.Text, "\ufffd"); strings.ToValidUTF8(fromYAML.Name, "\ufffd") != meant && utf8.ValidString(of.Text) {
				t.Errorf("%s %.80q is read as %q", of.Class, of.Text, fromYAML.Name)
			}
		}
	}
}

// What is printed may be pasted into a shell's here-document: it comes out as it is, and nothing
// else happens.
func TestPrintedRolesActOnNoShell(t *testing.T) {
	var lines, want strings.Builder
	for _, text := range hostile.Texts() {
		if text.Class == "long" {
			continue // which a shell takes its time to read
		}
		roles := hostileRoles(text.Text)
		var printed strings.Builder
		if err := errors.Join(permission.PrintYAML(&printed, roles, []string{text.Text, "a note"}), permission.PrintJSON(&printed, roles)); err != nil {
			t.Fatal(err)
		}
		var lacking permission.Lacking
		lacking.Of(&permission.ForbiddenError{Need: permission.Need{Verb: "get", Group: text.Text, Resource: text.Text, Name: text.Text, Namespace: text.Text}})
		if hint := lacking.Hint(); strings.Count(hint, "\n") != 2 {
			t.Errorf("%s %.80q: more than two lines:\n%s", text.Class, text.Text, hint)
		}
		printed.WriteString(lacking.Hint())
		want.WriteString(printed.String())
		fmt.Fprintf(&lines, "cat <<EOF\n%sEOF\n", printed.String()) // the history of bash takes quadratic time for a long one
	}
	wantLines := strings.Split(want.String(), "\n")
	for shell, got := range hostile.Paste(t, lines.String()) {
		for i, line := range strings.Split(got, "\n") {
			if line != wantLines[i] {
				t.Fatalf("%s printed %.200q, want %.200q", shell, line, wantLines[i])
			}
		}
	}
}
