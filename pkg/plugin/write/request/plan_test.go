package request

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

// object reads a manifest in one line and gives it what a server adds.
func object(t *testing.T, manifest string) *unstructured.Unstructured {
	t.Helper()
	text, err := yaml.YAMLToJSON([]byte(manifest))
	if err != nil {
		t.Fatal(err)
	}
	u := &unstructured.Unstructured{}
	if err := u.UnmarshalJSON(text); err != nil {
		t.Fatal(err)
	}
	u.SetUID("u")
	u.SetResourceVersion("7")
	return u
}

// edited is a copy with a field set; with the value nil, the field is removed.
func edited(u *unstructured.Unstructured, v any, path ...string) *unstructured.Unstructured {
	u = u.DeepCopy()
	if v == nil {
		unstructured.RemoveNestedField(u.Object, path...)
		return u
	}
	if err := unstructured.SetNestedField(u.Object, v, path...); err != nil {
		panic(err)
	}
	return u
}

func planned(t *testing.T, live, after *unstructured.Unstructured) Request {
	t.Helper()
	r, err := Plan(Input{
		Live: live, After: after, Manager: testManager,
		Types: builtInTypes(),
	})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

const configMap = `{apiVersion: v1, kind: ConfigMap, metadata: {name: c, namespace: t}, data: {a: "1"}}`

func TestPlanGuardsAnApplyConfiguration(t *testing.T) {
	live := object(t, configMap)
	r := planned(t, live, edited(live, "2", "data", "b"))
	want := `{"apiVersion":"v1","data":{"b":"2"},"kind":"ConfigMap","metadata":{"name":"c","namespace":"t","resourceVersion":"7","uid":"u"}}`
	if r.Method != Apply || string(r.Body) != want {
		t.Errorf("got %s %s\nwant apply %s", r.Method, r.Body, want)
	}
}

func TestPlanGuardsAJSONPatch(t *testing.T) {
	live := object(t, configMap)
	r := planned(t, live, edited(live, nil, "data", "a"))
	want := `[{"op":"replace","path":"/metadata/resourceVersion","value":"7"},{"op":"remove","path":"/data/a"}]`
	if string(r.Body) != want {
		t.Errorf("got  %s\nwant %s", r.Body, want)
	}
	if got := r.Reason.String(); got != "removal: .data.a" {
		t.Errorf("reason %q", got)
	}
}

func TestPlanPutsBackServerOwnedMetadata(t *testing.T) {
	live := object(t, configMap)
	after := live.DeepCopy()
	for _, f := range []string{"uid", "resourceVersion", "creationTimestamp", "managedFields", "generation"} {
		unstructured.RemoveNestedField(after.Object, "metadata", f)
	}
	after.SetGeneration(99)
	if r := planned(t, live, after); r.Method != None {
		t.Errorf("got %s %s, want nothing to send", r.Method, r.Body)
	}
}

func TestPlanTakesWholeFloatsForIntegers(t *testing.T) {
	live := object(t, `{apiVersion: x.io/v1, kind: X, metadata: {name: x}, spec: {size: 2}}`)
	if r := planned(t, live, edited(live, 2.0, "spec", "size")); r.Method != None {
		t.Errorf("got %s %s, want nothing to send", r.Method, r.Body)
	}
}

func TestPlanEncodesStringData(t *testing.T) {
	live := object(t, `{apiVersion: v1, kind: Secret, metadata: {name: s, namespace: t}, data: {a: YQ==}}`)
	after := edited(live, "over", "stringData", "a")
	r := planned(t, live, after)
	if strings.Contains(string(r.Body), "stringData") || !strings.Contains(string(r.Body), `"data":{"a":"b3Zlcg=="}`) {
		t.Errorf("got %s", r.Body)
	}
	if after.Object["stringData"] == nil {
		t.Error("the input was modified")
	}
}

// Found by TestRandomChanges of test/e2e: to the server, null is "".
func TestPlanTakesNullInStringDataForEmpty(t *testing.T) {
	live := object(t, `{apiVersion: v1, kind: Secret, metadata: {name: s, namespace: t}, data: {a: YQ==}}`)
	after := edited(live, map[string]any{"a": nil}, "stringData")
	r := planned(t, live, after)
	if strings.Contains(string(r.Body), "stringData") || !strings.Contains(string(r.Body), `"data":{"a":""}`) {
		t.Errorf("got %s", r.Body)
	}
}

func TestPlanRefusesAnotherIdentity(t *testing.T) {
	live := object(t, configMap)
	for field, after := range map[string]*unstructured.Unstructured{
		"apiVersion":         edited(live, "v2", "apiVersion"),
		"kind":               edited(live, "Secret", "kind"),
		"metadata.name":      edited(live, "d", "metadata", "name"),
		"metadata.namespace": edited(live, nil, "metadata", "namespace"),
		"metadata.uid":       edited(live, "v", "metadata", "uid"),
	} {
		_, err := Plan(Input{Live: live, After: after, Manager: testManager})
		if err == nil || !strings.HasPrefix(err.Error(), field+" may not change") {
			t.Errorf("%s: got %v", field, err)
		}
	}
}

func TestPlanRefusesUnguardedObjects(t *testing.T) {
	live := edited(object(t, configMap), nil, "metadata", "resourceVersion")
	_, err := Plan(Input{Live: live, After: edited(live, "2", "data", "b"), Manager: testManager})
	if err == nil || !strings.Contains(err.Error(), "could not be guarded") {
		t.Errorf("got %v", err)
	}
}

func TestPlanPatchesWithUnreadableManagedFields(t *testing.T) {
	live := object(t, configMap)
	live.SetManagedFields([]metav1.ManagedFieldsEntry{entry("argocd", "Apply", "", `{"k:{":{}}`)})
	r := planned(t, live, edited(live, "2", "data", "b"))
	if r.Method != JSONPatch || r.Reason.Kind != Simulation {
		t.Errorf("got %s, %s", r.Method, r.Reason)
	}
}

func TestClassify(t *testing.T) {
	const builtInType, custom = "v1", "x.io/v1"
	for _, c := range []struct {
		name               string
		apiVersion         string
		live, want, answer string // spec
		is                 string
	}{
		{"as predicted", custom, `{a: 1}`, `{a: 2}`, `{a: 2}`, ""},
		{"a default beside ours", custom, `{}`, `{a: 2}`, `{a: 2, b: 7}`, "defaults added .spec.b"},
		{"a removed field gets its default", custom, `{a: 5}`, `{}`, `{a: 7}`, "defaults added .spec.a"},
		{"an empty list", custom, `{}`, `{a: []}`, `{}`, "empty value dropped .spec.a"},
		{"nothing but nulls and empty maps", custom, `{}`, `{a: {b: null, c: {}}}`, `{}`, "empty value dropped .spec.a"},
		{"null in a custom resource", custom, `{a: 1}`, `{a: null}`, `{}`, "empty value dropped .spec.a"},
		{"null is absent in a built-in type", builtInType, `{}`, `{a: null}`, `{}`, ""},
		{"null asks for the default", custom, `{a: 1}`, `{a: null}`, `{a: 7}`, "normalised .spec.a"},
		{"false is not stored by Go types", builtInType, `{a: true}`, `{a: false}`, `{}`, "empty value dropped .spec.a"},
		{"false is stored in custom resources", custom, `{a: true}`, `{a: false}`, `{}`, "lost .spec.a"},
		{"a quantity", custom, `{}`, `{a: 1000m}`, `{a: "1"}`, "normalised .spec.a"},
		{"a quantity from a number", custom, `{}`, `{a: 1}`, `{a: "1"}`, "normalised .spec.a"},
		{"bytes", custom, `{}`, `{a: YR==}`, `{a: YQ==}`, "normalised .spec.a"},
		{"a duration", custom, `{}`, `{a: 60s}`, `{a: 1m0s}`, "normalised .spec.a"},
		{"a time", custom, `{}`, `{a: "2026-01-01T01:00:00.5+01:00"}`, `{a: "2026-01-01T00:00:00Z"}`, "normalised .spec.a"},
		{"another value", custom, `{a: x}`, `{a: y}`, `{a: z}`, "overridden .spec.a"},
		{"our value is set back", custom, `{a: x}`, `{a: y}`, `{a: x}`, "overridden .spec.a"},
		{"our value is ignored", custom, `{}`, `{a: y}`, `{}`, "refused .spec.a"},
		{"an element that was kept is gone", custom, `{a: [1, 2]}`, `{a: [3, 2]}`, `{a: [3]}`, "lost .spec.a[1]"},
		{"a field beside ours is gone", custom, `{a: 1, b: 2}`, `{a: 3, b: 2}`, `{a: 3}`, "lost .spec.b"},
	} {
		t.Run(c.name, func(t *testing.T) {
			state := func(spec string) string {
				return fmt.Sprintf("{apiVersion: %s, kind: Thing, metadata: {name: x}, spec: %s}", c.apiVersion, spec)
			}
			live := object(t, state(c.live))
			r, err := Plan(Input{Live: live, After: object(t, state(c.want)), Manager: testManager})
			if err != nil {
				t.Fatal(err)
			}
			answer := Classify(r, object(t, state(c.answer)))
			got := ""
			for _, f := range answer.Difference {
				got += fmt.Sprintf("%s %s", f.Class, f.Path)
			}
			if got != c.is {
				t.Errorf("got %q, want %q", got, c.is)
			}
		})
	}
}

func entry(manager, operation, subresource, fields string) metav1.ManagedFieldsEntry {
	return metav1.ManagedFieldsEntry{
		Manager: manager, Operation: metav1.ManagedFieldsOperationType(operation), Subresource: subresource, APIVersion: "v1",
		FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(fields),
	}
}

func TestTakeovers(t *testing.T) {
	const held, kept = `{"f:data":{"f:a":{},"f:b":{}}}`, `{"f:data":{"f:b":{}}}`
	for _, c := range []struct {
		manager, operation, subresource string
		want                            string
	}{
		{testManager, "Update", "", "silent kubectl-mutate (Update): .data.a"},
		{testManager, "Apply", "scale", "silent kubectl-mutate (Apply of scale): .data.a"},
		{"before-first-apply", "Update", "", "silent before-first-apply (Update): .data.a"},
		{"kubectl-create", "Update", "", "silent kubectl-create (Update): .data.a"},
		{"kubectl-edit", "Update", "", "silent kubectl-edit (Update): .data.a"},
		{"kubectl", "Apply", "", "contested kubectl (Apply): .data.a"},
		{"argocd", "Apply", "", "contested argocd (Apply): .data.a"},
		{"kube-controller-manager", "Update", "scale", "contested kube-controller-manager (Update of scale): .data.a"},
		{"helm", "Update", "", "shown helm (Update): .data.a"},
	} {
		live := object(t, configMap)
		r := planned(t, live, edited(live, "2", "data", "a"))
		live.SetManagedFields([]metav1.ManagedFieldsEntry{
			entry(c.manager, c.operation, c.subresource, held), entry("bystander", "Apply", "", kept),
		})
		answer := live.DeepCopy()
		answer.SetManagedFields([]metav1.ManagedFieldsEntry{
			entry(c.manager, c.operation, c.subresource, kept), entry("bystander", "Apply", "", kept),
		})
		got := ""
		takeovers, err := Takeovers(r, answer)
		if err != nil {
			t.Fatal(err)
		}
		for _, o := range takeovers {
			got += fmt.Sprintf("%s %s", o.Verdict, o)
		}
		if d := cmp.Diff(c.want, got); d != "" {
			t.Errorf("%s (-want +got):\n%s", c.manager, d)
		}
	}
}

func TestTakeoversLeaveOutTheRequestItself(t *testing.T) {
	live := object(t, configMap)
	r := planned(t, live, edited(live, nil, "data", "a")) // a JSON patch: recorded as Update
	live.SetManagedFields([]metav1.ManagedFieldsEntry{entry(testManager, "Update", "", `{"f:data":{"f:a":{}}}`)})
	if got, err := Takeovers(r, edited(live, nil, "metadata", "managedFields")); err != nil || len(got) != 0 {
		t.Errorf("got %v, %v", got, err)
	}
}
