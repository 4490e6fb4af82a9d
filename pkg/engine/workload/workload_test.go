package workload_test

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/workload"
)

// The Pod of a workload is the one that the controllers of Kubernetes 1.36 created for it
// (in test/e2e/controlplane, `go run ./pods ../../../pkg/engine/workload/testdata/workloads.yaml` records them, each
// behind its workload; CREATED_PODS names another recording), but for
//   - the account "default", which the admission plugin ServiceAccount sets in every cluster, and which is left
//     to it with the volume of its token;
//   - what is Unknown: the hashes of templates and revisions, a UID, the node, and the time in the name of a Job.
//
// What a scheduler and a kubelet add is not in the recorded Pods.
func TestPodIsThatOfItsController(t *testing.T) {
	t.Parallel()
	path := "testdata/created.yaml"
	if other := os.Getenv("CREATED_PODS"); other != "" {
		path = other
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	documents := strings.Split(string(text), "\n---\n")
	kinds := map[string]int{}
	for i := 0; i+1 < len(documents); i += 2 {
		of, want := object(t, documents[i]), object(t, documents[i+1])
		kinds[of.GetKind()]++
		got := of
		for got != nil && got.GetKind() != "Pod" {
			got, _, _ = workload.Make(got)
		}
		if got == nil {
			t.Errorf("%s %s: no Pod", of.GetKind(), of.GetName())
			continue
		}
		spec := got.Object["spec"].(map[string]any)
		if wanted := want.Object["spec"].(map[string]any); wanted["serviceAccountName"] == nil && spec["serviceAccountName"] == "default" {
			delete(spec, "serviceAccountName")
			delete(spec, "serviceAccount")
		}
		delete(want.Object, "status")
		delete(got.Object, "status")
		if diff := cmp.Diff(want.Object, got.Object, cmp.FilterValues(isUnknown, cmp.Comparer(meets))); diff != "" {
			t.Errorf("%s %s (-created +made):\n%s", of.GetKind(), of.GetName(), diff)
		}
	}
	t.Log(kinds)
	if len(kinds) != 7 {
		t.Errorf("kinds of workloads: %v", kinds)
	}
}

func object(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	u := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(text), &u.Object); err != nil {
		t.Fatal(err)
	}
	json, err := u.MarshalJSON()
	if err == nil {
		err = u.UnmarshalJSON(json) // whose integers are those of the engine
	}
	if err != nil {
		t.Fatal(err)
	}
	return u
}

func isUnknown(a, b string) bool { return strings.Contains(a+b, workload.Unknown) }

// meets reports whether a string is another one, with something else in the place of what is unknown.
func meets(a, b string) bool {
	if strings.Contains(a, workload.Unknown) {
		a, b = b, a
	}
	pattern := strings.ReplaceAll(regexp.QuoteMeta(b), regexp.QuoteMeta(workload.Unknown), ".+")
	return regexp.MustCompile("^" + pattern + "$").MatchString(a)
}

// A manifest may have anything anywhere: with each of its values replaced, there is a Pod or none.
func TestMakeOfAnything(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("testdata/workloads.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for document := range strings.SplitSeq(string(text), "\n---\n") {
		of := object(t, document)
		var vary func(set func(any), v any)
		vary = func(set func(any), v any) {
			for _, other := range []any{nil, "text", int64(1), []any{"text"}, map[string]any{"text": "text"}} {
				set(other)
				made, _, makes := workload.Make(of)
				for makes {
					made, _, makes = workload.Make(made)
				}
			}
			set(v)
			switch v := v.(type) {
			case map[string]any:
				for name, below := range v {
					vary(func(other any) { v[name] = other }, below)
				}
			case []any:
				for i, below := range v {
					vary(func(other any) { v[i] = other }, below)
				}
			}
		}
		vary(func(other any) { of.Object["spec"] = other }, of.Object["spec"])
		vary(func(other any) { of.Object["metadata"] = other }, of.Object["metadata"])
	}
}
