package e2e

import (
	"net/http"
	"os"
	"path"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
)

// bothPartsPolicy changes an object and its status, which are two requests.
const bothPartsPolicy = `{apiVersion: kyverno.io/v1, kind: ClusterPolicy, metadata: {name: both}, spec: {mutateExistingOnPolicyUpdate: true, rules: [{name: r, match: {any: [{resources: {kinds: [ConfigMap], names: ["settings-*"]}}]},
	mutate: {targets: [{apiVersion: v1, kind: ReplicationController, namespace: shop, name: app}], patchStrategicMerge: {metadata: {labels: {seen: "yes"}}, status: {conditions: [{type: Seen, status: "True"}]}}}}]}}`

// The server goes away between the two requests for an object: the status is left to --resume, which is told. The object is
// written once; what a watch makes twice, by a rule that appends, stays to be seen.
func TestStatusOutlastsTheAbsenceOfTheServer(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		lost    string // the write whose answer does not come
		watches bool
	}{
		"a run, that of the object": {"app", false}, "a run, that of the status": {"status", false},
		"a watch, that of the object": {"app", true}, "a watch, that of the status": {"status", true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := &appendingWatch{clusters: startClusters(t, "one"), t: t, program: programOf(t)}
			var writes atomic.Int32
			a.through(t, "proxy", "one", func(w http.ResponseWriter, r *http.Request, pass http.Handler) {
				at := path.Base(r.URL.Path)
				written := r.Method == http.MethodPatch && !r.URL.Query().Has("dryRun")
				if written && at == "app" && !a.away.Load() {
					writes.Add(1)
				}
				if written && at == test.lost && a.begun.CompareAndSwap(false, true) {
					if a.away.Store(true); at == "app" { // it is stored
						pass.ServeHTTP(&discarded{header: http.Header{}}, r)
					}
				}
				if a.away.Load() {
					abort()
				}
				pass.ServeHTTP(w, r)
			})
			policy, label := bothPartsPolicy, "yes"
			if test.watches {
				policy, label = strings.Replace(policy, `"yes"`, `"{{ target.metadata.labels.seen || '' }}x"`, 1), "x"
			}
			check(t, os.WriteFile(filepath.Join(a.dir, "append.yaml"), []byte(policy), 0o600))
			a.create(t, "one", fleetObject("Namespace", "shop", nil), fleetObject("ReplicationController", "app", map[string]any{"spec": map[string]any{
				"replicas": int64(0), "selector": map[string]any{"a": "b"}, "template": map[string]any{
					"metadata": map[string]any{"labels": map[string]any{"a": "b"}},
					"spec":     map[string]any{"containers": []any{map[string]any{"name": "c", "image": "i"}}},
				},
			}}))
			const left = "the server did not answer any more when the status was to be written: continue with --resume"
			if test.watches {
				a.watch()
				a.trigger("first")
				a.await("trying again to look it up")
				a.away.Store(false)
				a.await(left)
				a.end()
			} else {
				a.trigger("first")
				code, out, errOut := a.run(t, a.program, "apply-existing", "-n", "shop", "-p", "append.yaml", "--context", "proxy", "--yes", "--request-timeout", "2s")
				if code == 0 || test.lost == "status" && !strings.Contains(out+errOut, left) || !strings.Contains(errOut, "To continue with 1 object: ") {
					t.Errorf("exit code %d\n%s\n%s", code, out, errOut)
				}
				a.away.Store(false)
			}
			a.parts(label, 0)
			if !test.watches {
				a.follow("apply-existing", "--resume", "latest", "--yes")
				a.parts(label, 1)
			}
			if n := writes.Load(); n != 1 {
				t.Errorf("the object is written %d times\n%s", n, a.said())
			}
		})
	}
}

// parts checks the label that bothPartsPolicy sets, and that the status has so many conditions.
func (a *appendingWatch) parts(label string, conditions int) {
	a.t.Helper()
	client, err := dynamic.NewForConfig(a.client(a.t, "one"))
	check(a.t, err)
	u, err := client.Resource(schema.GroupVersionResource{Version: "v1", Resource: "replicationcontrollers"}).Namespace("shop").Get(a.t.Context(), "app", metav1.GetOptions{})
	check(a.t, err)
	list, _, err := unstructured.NestedSlice(u.Object, "status", "conditions")
	check(a.t, err)
	if got := u.GetLabels()["seen"]; got != label || len(list) != conditions {
		a.t.Fatalf("label %q, %d conditions, want %q and %d\n%s", got, len(list), label, conditions, a.said())
	}
}
