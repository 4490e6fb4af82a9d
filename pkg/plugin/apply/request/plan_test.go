package request

import (
	"strings"
	"testing"

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
