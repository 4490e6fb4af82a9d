package e2e

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/cluster"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/write"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/write/request"
)

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func checkOutcome(t *testing.T, r write.Result, want write.Outcome) {
	t.Helper()
	if r.Outcome != want {
		t.Fatalf("outcome %s (%s, %s, %v), want %s", r.Outcome, r.Method, r.Reason, r.Err, want)
	}
}

// names lists what a list field of the live object holds, by name.
func (w *writePath) names(t *testing.T, key engine.ObjectKey, path ...string) string {
	t.Helper()
	live, err := w.Get(w.ctx, key)
	check(t, err)
	list, _, err := unstructured.NestedSlice(live.Object, path...)
	check(t, err)
	var out []string
	for _, x := range list {
		out = append(out, nameOf(x))
	}
	return strings.Join(out, " ")
}

// An apply configuration that leads through a list element makes its manager a
// co-owner of the element. The one who had applied it must still be able to
// remove it.
func TestAGitOpsOwnerCanStillRemoveWhatWeChanged(t *testing.T) {
	w := newWritePath(t)
	for name, change := range map[string]mutation{
		"env":   add(side+"env", fields{"name": "Q", "value": "1"}),
		"image": set(side+"image", "envoy:2"),
	} {
		t.Run(name, func(t *testing.T) {
			key := w.deployment(name)
			check(t, w.applyAs(w.ctx, gitops, w.manifest("deployment", name), false))
			_, r := w.write(t, key, change)
			checkOutcome(t, r, write.Applied)
			check(t, w.applyAs(w.ctx, gitops, w.manifest("deployment", name, "      - {name: side, image: \"envoy:1\"}\n", ""), true))
			if got := w.names(t, key, "spec", "template", "spec", "containers"); got != "app" {
				t.Errorf("containers %s", got)
			}
		})
	}
}

func TestAGitOpsOwnerIsNamedAndNotOverruled(t *testing.T) {
	w := newWritePath(t)
	w.writer.ForceConflicts = false
	check(t, w.applyAs(w.ctx, gitops, w.manifest("deployment", "web"), false))
	_, r := w.write(t, w.deployment("web"), set("metadata|labels|tier", "b"))
	checkOutcome(t, r, write.Conflicted)
	if text := r.Err.Error(); !strings.Contains(text, "argocd (Apply): .metadata.labels.tier") || !strings.Contains(text, "--take-from=argocd") {
		t.Errorf("got %s", text)
	}
	live, err := w.Get(w.ctx, w.deployment("web"))
	check(t, err)
	if live.GetResourceVersion() != r.Before.GetResourceVersion() {
		t.Error("the object was written")
	}
}

// With an old schema, a list that has become atomic looks like one whose
// elements can be applied one by one, and all others would be lost.
func TestAnOldSchemaLosesNothing(t *testing.T) {
	w := newWritePath(t)
	key := w.custom("Flip", "v1", "f")
	check(t, w.define("Flip", "map-list"))
	check(t, w.object("flip", "f")())
	_, err := w.Types(w.ctx, schema.GroupVersionKind{Group: testGroup, Version: "v1", Kind: "Flip"}, true)
	check(t, err)
	check(t, w.redefine("Flip", "atomic-list"))
	w.writer.Confirm = nil // data may not be lost, and no one says yes
	_, r := w.write(t, key, set("spec|l|[x]|v", "10"))
	checkOutcome(t, r, write.Applied)
	if got := w.names(t, key, "spec", "l"); got != "x yo" {
		t.Errorf("elements %s after %s (%s)", got, r.Method, r.Reason)
	}
}

// Applied as stringData, a value would overwrite the one of another owner
// without a conflict, and the ownership would stay where it was.
func TestStringDataTakesOverWhatItOverwrites(t *testing.T) {
	w := newWritePath(t)
	check(t, w.create(w.ctx, "helm", w.manifest("secret", "s")))
	key := w.key("", "v1", "Secret", "s")
	_, r := w.write(t, key, set("stringData|a", "new"))
	checkOutcome(t, r, write.Applied)
	if got := fmt.Sprint(owners(r.Takeovers, leaves)); got != "[helm(U)-1]" {
		t.Errorf("takeovers %s", got)
	}
	if !ownFields(r, r.After).Has(fieldpath.MakePathOrDie("data", "a")) {
		t.Error("the value is not ours")
	}
}

// A strict 422 quotes the whole object.
func TestARejectedSecretIsNotShown(t *testing.T) {
	w := newWritePath(t)
	check(t, w.object("secret", "s", "YQ==", "aHVudGVyMg==")())
	_, r := w.write(t, w.key("", "v1", "Secret", "s"), set("bogus", "x"))
	checkOutcome(t, r, write.Failed)
	var status apierrors.APIStatus
	if !errors.As(r.Err, &status) || !strings.Contains(status.Status().Message, "aHVudGVyMg==") {
		t.Errorf("the server no longer quotes the object: %v", status)
	}
	if text := r.Err.Error(); strings.Contains(text, "aHVudGVyMg") || !strings.Contains(text, `unknown field "bogus"`) {
		t.Errorf("got %s", text)
	}
}

// interrupted lets another client act just before a request.
type interrupted struct {
	*writePathServer
	before func(p cluster.Patch)
}

func (i *interrupted) Patch(ctx context.Context, key engine.ObjectKey, p cluster.Patch) (*unstructured.Unstructured, error) {
	i.before(p)
	return i.writePathServer.Patch(ctx, key, p)
}

// The two 409s, of a stale object and of fields that others own, look alike;
// force in the dry run keeps them apart. What was deleted is never created.
func TestWhatHappensMeanwhile(t *testing.T) {
	for _, method := range []request.Method{request.Apply, request.JSONPatch} {
		for _, when := range []bool{true, false} {
			name := fmt.Sprintf("%s, dry run %v: ", method, when)
			t.Run(name+"changed", func(t *testing.T) {
				r := meanwhile(t, method, when, func(w *writePath, key engine.ObjectKey) error {
					return w.patchAs(w.ctx, "human", key, types.MergePatchType, `{"data":{"b":"theirs"}}`)
				})
				checkOutcome(t, r, write.Applied)
				b, _, _ := unstructured.NestedString(r.After.Object, "data", "b")
				if r.Retries != 1 || b != "theirs" {
					t.Errorf("%d retries, data.b %q", r.Retries, b)
				}
			})
			t.Run(name+"deleted", func(t *testing.T) {
				checkOutcome(t, meanwhile(t, method, when, deleted), write.Deleted)
			})
			t.Run(name+"replaced", func(t *testing.T) {
				checkOutcome(t, meanwhile(t, method, when, func(w *writePath, key engine.ObjectKey) error {
					return errors.Join(deleted(w, key), w.withData("c", "data: {a: '1', gone: x}")())
				}), write.Replaced)
			})
		}
	}
}

func deleted(w *writePath, key engine.ObjectKey) error {
	return w.resource(key).Delete(w.ctx, key.Name, metav1.DeleteOptions{})
}

// meanwhile writes a ConfigMap by one method, and lets another client act just before
// the first dry run or the first write.
func meanwhile(t *testing.T, method request.Method, dryRun bool, act func(*writePath, engine.ObjectKey) error) write.Result {
	t.Helper()
	w := newWritePath(t)
	key := w.configMap("c")
	check(t, w.withData("c", "data: {a: '1', gone: x}")())
	done := false
	w.writer.Server = &interrupted{w.writePathServer, func(p cluster.Patch) {
		if p.DryRun == dryRun && !done {
			done = true
			check(t, act(w, key))
		}
	}}
	change := set("data|a", "9")
	if method == request.JSONPatch {
		change = remove("data|gone")
	}
	_, r := w.write(t, key, change)
	return r
}

// An admission policy that sets a field back makes the dry run answer the live
// object: without a look at it, every run would write.
func TestAValueThatAdmissionSetsBackIsNotWritten(t *testing.T) {
	w := newWritePath(t)
	name := fmt.Sprintf("kept-%08x", rand.Uint32())
	for _, object := range []string{"admissionpolicy", "admissionbinding"} {
		manifest := w.manifest(object, name)
		parsed, err := parse(manifest)
		check(t, err)
		check(t, w.create(w.ctx, creator, manifest))
		w.deleteAtEnd(parsed)
	}
	key := w.configMap(name)
	w.awaitInjection(t, name)
	_, r := w.write(t, key, set("data|b", "2"))
	checkOutcome(t, r, write.Applied)
	_, r = w.write(t, key, set("data|forced", "me"))
	checkOutcome(t, r, write.ServerKeepsValue)
	if got := r.Difference.Of(request.Overridden).Paths(); len(got) != 1 || got[0] != "data.forced" {
		t.Errorf("findings %v", r.Difference)
	}
}

// awaitInjection makes a ConfigMap again and again until the admission policy,
// which takes a moment to be heard of, has changed it.
func (w *writePath) awaitInjection(t *testing.T, name string) {
	t.Helper()
	key := w.configMap(name)
	for range 100 {
		check(t, w.withData(name, "data: {a: '1'}")())
		live, err := w.Get(w.ctx, key)
		check(t, err)
		if live.GetLabels()["injected"] != "" {
			return
		}
		check(t, deleted(w, key))
		time.Sleep(100 * time.Millisecond)
	}
	t.Fatal("the admission policy never took effect")
}

// Each writer finds its change in the object, unless it was told that the object was too busy.
func TestWritersSideBySideLoseNothing(t *testing.T) {
	const writers, changesEach = 8, 5
	w := newWritePath(t)
	key := w.configMap("c")
	check(t, w.withData("c", "data: {a: '1'}")())
	_, err := w.Types(w.ctx, schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}, false)
	check(t, err)
	var running sync.WaitGroup
	var applied atomic.Int32
	for i := range writers {
		server := *w.writePathServer
		writer := *w.writer
		writer.Server = &server
		running.Go(func() {
			for k := range changesEach {
				r, err := verifyAndWrite(w.ctx, &writer, key, wanted(set(fmt.Sprintf("data|w%d-%d", i, k), "v")))
				var busy *write.BusyError
				switch {
				case err != nil:
					t.Error(err)
				case r.Outcome == write.Applied:
					applied.Add(1)
				case !errors.As(r.Err, &busy):
					t.Errorf("%s: %v", r.Outcome, r.Err)
				}
			}
		})
	}
	running.Wait()
	live, err := w.Get(w.ctx, key)
	check(t, err)
	n := len(live.Object["data"].(map[string]any))
	if n != 1+int(applied.Load()) || applied.Load() < writers*changesEach*3/4 {
		t.Errorf("%d keys, %d of %d changes applied", n, applied.Load(), writers*changesEach)
	}
	t.Logf("%d of %d changes applied", applied.Load(), writers*changesEach)
}

func TestStatusBesideAnotherChange(t *testing.T) {
	w := newWritePath(t)
	w.writer.HasStatus = w.plugin.HasStatus
	check(t, w.made("web")())
	change := all(set("metadata|labels|tier", "b"), set("status|observedGeneration", 7))
	_, r := w.write(t, w.deployment("web"), change)
	checkOutcome(t, r, write.Applied)
	if r.Status == nil {
		t.Fatal("the status was not written")
	}
	checkOutcome(t, *r.Status, write.Applied)
	if n, _, _ := unstructured.NestedInt64(r.Status.After.Object, "status", "observedGeneration"); n != 7 {
		t.Errorf("status %v", r.Status.After.Object["status"])
	}
	_, r = w.write(t, w.deployment("web"), change)
	checkOutcome(t, r, write.Unchanged)
}

func TestReplicasThroughScale(t *testing.T) {
	w := newWritePath(t)
	check(t, w.made("web")())
	key := w.deployment("web")
	key.Subresource = "scale"
	_, r := w.write(t, key, set("spec|replicas", 3))
	checkOutcome(t, r, write.Applied)
	live, err := w.Get(w.ctx, w.deployment("web"))
	check(t, err)
	if n, _, _ := unstructured.NestedInt64(live.Object, "spec", "replicas"); n != 3 {
		t.Errorf("%d replicas", n)
	}
	t.Logf("%s %s", r.Method, r.Reason)
	_, r = w.write(t, key, set("spec|replicas", 3))
	checkOutcome(t, r, write.Unchanged)
	_, r = w.write(t, key, set("spec|replicas", 4))
	checkOutcome(t, r, write.Applied)
}
