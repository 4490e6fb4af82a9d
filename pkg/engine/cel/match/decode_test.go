package match_test

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/cel/match"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/policydecode"
)

func constraints(t *testing.T, text string) *match.Constraints {
	t.Helper()
	var value map[string]any
	if err := yaml.Unmarshal([]byte(text), &value); err != nil {
		t.Fatal(err)
	}
	r := &policydecode.Report{Warn: func(engine.CompileError) {}}
	c := match.Decode(policydecode.Node{Report: r, Value: value}.Fields(), func(n policydecode.Node) { n.Fail("is missing") })
	if err := r.Err(); err != nil {
		t.Fatal(err)
	}
	return c
}

const pods = `{apiGroups: [""], apiVersions: [v1], resources: [pods], operations: [CREATE]`

func TestMatchAsWritten(t *testing.T) {
	pod := func(metadata map[string]any) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Pod", "metadata": metadata}}
	}
	namespaced := pod(map[string]any{"name": "a", "namespace": "shop"})
	for _, c := range []struct {
		name, constraints string
		object, old       *unstructured.Unstructured
		resource          string
		operation         engine.Operation
		want              string // part of the reason; empty where it matches
	}{
		{"nothing selects everything", `{}`, namespaced, nil, "pods", "UPDATE", ""},
		{"the resource", `resourceRules: [` + pods + `}]`, namespaced, nil, "pods", "CREATE", ""},
		{"another operation", `resourceRules: [` + pods + `}]`, namespaced, nil, "pods", "UPDATE", "operations: wants CREATE, is UPDATE"},
		{"no operation in particular", `resourceRules: [` + pods + `}]`, namespaced, nil, "pods", "", ""},
		{"another resource", `resourceRules: [` + pods + `}]`, namespaced, nil, "services", "CREATE", `resourceRules: wants pods of v1, is services of v1 named "a"`},
		{"the name", `resourceRules: [` + pods + `, resourceNames: [a]}]`, namespaced, nil, "pods", "CREATE", ""},
		{"another name", `resourceRules: [` + pods + `, resourceNames: [b, aa]}]`, namespaced, nil, "pods", "CREATE", `resourceRules: wants pods of v1 named b, aa, is pods of v1 named "a"`},
		{"a name that is yet to come", `resourceRules: [` + pods + `, resourceNames: [web]}]`, pod(map[string]any{"generateName": "web-"}), nil, "pods", "CREATE", ""},
		{"another that is yet to come", `resourceRules: [` + pods + `, resourceNames: [db]}]`, pod(map[string]any{"generateName": "web-"}), nil, "pods", "CREATE", `resourceRules: wants pods of v1 named db, is pods of v1 named ""`},
		{"cluster scope", `resourceRules: [` + pods + `, scope: Cluster}]`, namespaced, nil, "pods", "CREATE", `resourceRules: wants pods of v1 in scope Cluster, is pods of v1 named "a"`},
		{"namespaced scope", `resourceRules: [` + pods + `, scope: Namespaced}]`, namespaced, nil, "pods", "CREATE", ""},
		{"exclusion before selection", `{resourceRules: [` + pods + `}], excludeResourceRules: [` + pods + `}]}`, namespaced, nil, "pods", "CREATE", `excludeResourceRules: wants none of pods of v1, is pods of v1 named "a"`},
		{"labels of the object", `objectSelector: {matchLabels: {app: web}}`, pod(map[string]any{"labels": map[string]any{"app": "web"}}), nil, "pods", "UPDATE", ""},
		{"labels that it had", `objectSelector: {matchLabels: {app: web}}`, namespaced, pod(map[string]any{"labels": map[string]any{"app": "web"}}), "pods", "UPDATE", ""},
		{"labels that it never had", `objectSelector: {matchLabels: {app: web}}`, namespaced, namespaced, "pods", "UPDATE", "objectSelector: wants app=web, has none"},
		{"an empty selector", `{objectSelector: {}, namespaceSelector: {}}`, namespaced, nil, "pods", "UPDATE", ""},
		{"a cluster-scoped object", `namespaceSelector: {matchLabels: {tier: gold}}`, pod(map[string]any{"name": "a"}), nil, "nodes", "UPDATE", ""},
		{"a namespace's own labels", `namespaceSelector: {matchLabels: {tier: gold}}`, pod(map[string]any{"name": "a", "labels": map[string]any{"tier": "gold"}}), nil, "namespaces", "UPDATE", ""},
		{"a namespace without them", `namespaceSelector: {matchLabels: {tier: gold}}`, pod(map[string]any{"name": "a"}), nil, "namespaces", "UPDATE", "namespaceSelector: wants tier=gold, the Namespace has none"},
	} {
		t.Run(c.name, func(t *testing.T) {
			candidate := &match.Candidate{
				Resource: schema.GroupVersionResource{Version: "v1", Resource: c.resource}, Operation: c.operation,
				Namespace: c.object.GetNamespace(), Name: c.object.GetName(), GenerateName: c.object.GetGenerateName(),
				Object: c.object, OldObject: c.old,
			}
			of := constraints(t, c.constraints)
			result, err := of.Match(candidate)
			if err != nil {
				t.Fatal(err)
			}
			reason := ""
			if !result.Applies() {
				reason = of.Explain(result, candidate).Error()
			}
			if reason != c.want {
				t.Errorf("got %q, want %q", reason, c.want)
			}
		})
	}
}
