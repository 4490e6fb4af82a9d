package mutatingpolicy

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/policydecode"
)

func document(t *testing.T, text string) (*policydecode.Report, engine.Document) {
	t.Helper()
	u := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(text), &u.Object); err != nil {
		t.Fatal(err)
	}
	return &policydecode.Report{Warn: func(engine.CompileError) {}}, engine.NewDocument(u, "")
}

func policy(t *testing.T, kind, metadata, spec string) *policySpec {
	t.Helper()
	r, d := document(t, "{apiVersion: policies.kyverno.io/v1, kind: "+kind+", metadata: "+metadata+", spec: {"+
		"mutations: [{patchType: JSONPatch, jsonPatch: {expression: '[]'}}], "+spec+"}}")
	p := decodePolicy(r, d)
	if err := r.Err(); err != nil {
		t.Fatal(err)
	}
	return p
}

func TestDisplayName(t *testing.T) {
	for _, c := range []struct{ kind, metadata, name, namespace string }{
		{kindPolicy, "{name: a}", "a", ""},
		{kindPolicy, "{name: a, namespace: shop}", "a", ""}, // a cluster-scoped kind has none
		{kindNamespacedPolicy, "{name: a, namespace: shop}", "shop/a", "shop"},
		{kindNamespacedPolicy, "{name: a}", "default/a", "default"},
	} {
		p := policy(t, c.kind, c.metadata, "")
		if p.DisplayName() != c.name || p.Namespace != c.namespace {
			t.Errorf("%s %s: %q in %q, want %q in %q", c.kind, c.metadata, p.DisplayName(), p.Namespace, c.name, c.namespace)
		}
	}
}

func TestDerivations(t *testing.T) {
	const rule = `apiGroups: [""], apiVersions: [v1], resources: [pods], operations: [CREATE]`
	both := []string{"cronjobs", "defaults"}
	for _, c := range []struct {
		name, spec string
		want       []string
	}{
		{"a rule for Pods", `matchConstraints: {resourceRules: [{` + rule + `}]}`, both},
		{"with a selector of namespaces", `matchConstraints: {namespaceSelector: {matchLabels: {a: b}}, resourceRules: [{` + rule + `}]}`, both},
		{"with a selector of objects", `matchConstraints: {objectSelector: {matchLabels: {a: b}}, resourceRules: [{` + rule + `}]}`, nil},
		{"with an empty selector of objects", `matchConstraints: {objectSelector: {}, resourceRules: [{` + rule + `}]}`, both},
		{"with exclusions", `matchConstraints: {excludeResourceRules: [{` + rule + `}], resourceRules: [{` + rule + `}]}`, nil},
		{"with names", `matchConstraints: {resourceRules: [{` + rule + `, resourceNames: [a]}]}`, nil},
		{"two rules", `matchConstraints: {resourceRules: [{` + rule + `}, {` + rule + `}]}`, nil},
		{"other resources", `matchConstraints: {resourceRules: [{apiGroups: [""], apiVersions: [v1], resources: [pods, services], operations: [CREATE]}]}`, nil},
		{"with targets", `evaluation: {mutateExisting: {enabled: true}}, targetMatchConstraints: {expression: x}, matchConstraints: {resourceRules: [{` + rule + `}]}`, nil},
		{"none wanted", `autogen: {podControllers: {controllers: []}}, matchConstraints: {resourceRules: [{` + rule + `}]}`, nil},
		{"some wanted", `autogen: {podControllers: {controllers: [jobs]}}, matchConstraints: {resourceRules: [{` + rule + `}]}`, both[1:]},
	} {
		t.Run(c.name, func(t *testing.T) {
			var got []string
			for _, d := range policy(t, kindPolicy, "{name: a}", c.spec).Derivations() {
				got = append(got, d.Name)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestException(t *testing.T) {
	r, d := document(t, `{metadata: {name: x, namespace: kyverno}, spec: {expiresAt: "2026-01-02T00:00:00Z", images: ["r.io/*"],
		policyRefs: [{kind: MutatingPolicy, name: a}, {kind: NamespacedMutatingPolicy, name: b}]}}`)
	x := decodeException(r, d)
	if err := r.Err(); err != nil {
		t.Fatal(err)
	}
	for kind, names := range map[string]map[string]bool{
		kindPolicy:           {"a": true, "b": false},
		kindNamespacedPolicy: {"a": false, "b": true},
	} {
		for name, want := range names {
			if got := x.Names(policy(t, kind, "{name: "+name+"}", "")); got != want {
				t.Errorf("names %s %s: %t, want %t", kind, name, got, want)
			}
		}
	}
	expiry := time.Date(2026, 1, 2, 0, 0, 0, 0, time.UTC)
	if x.Expired(expiry.Add(-time.Second)) || !x.Expired(expiry) {
		t.Error("an exception holds up to its expiry and no longer")
	}
	if x.Name != "kyverno/x" || !x.Partial() || x.Passes {
		t.Errorf("read as %+v", x)
	}
}
