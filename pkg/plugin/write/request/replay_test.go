package request

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	jsonpatch "github.com/evanphx/json-patch/v5"
	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/client-go/applyconfigurations"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/kube-openapi/pkg/spec3"
	"sigs.k8s.io/yaml"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/diff"
)

const (
	testManager   = "kubectl-mutate"
	recordedCases = 112 // a recording that is gone must not go unnoticed
)

// TestPlanReplaysRecordings plans every write that TestWritePath, in test/e2e, has recorded on
// a real API server, and judges the answer that the server gave to it. Run that
// test with -update to record again.
func TestPlanReplaysRecordings(t *testing.T) {
	files, err := filepath.Glob(filepath.Join("testdata", "*.txtar"))
	if err != nil {
		t.Fatal(err)
	}
	if len(files) != recordedCases {
		t.Errorf("%d recorded cases, want %d", len(files), recordedCases)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			for i, w := range readRecording(t, file) {
				t.Run(fmt.Sprint(i+1), func(t *testing.T) { w.replay(t) })
			}
		})
	}
}

// recordedWrite is what the harness saw of one write.
type recordedWrite struct {
	subresource string
	files       map[string][]byte
}

func readRecording(t *testing.T, file string) []recordedWrite {
	t.Helper()
	archive, err := txtar.ParseFile(file)
	if err != nil {
		t.Fatal(err)
	}
	_, subresource, _ := strings.Cut(strings.TrimSpace(string(archive.Comment)), "subresource: ")
	var writes []recordedWrite
	for _, f := range archive.Files {
		number, name, _ := strings.Cut(f.Name, "/")
		if number != fmt.Sprint(len(writes)) {
			writes = append(writes, recordedWrite{subresource: subresource, files: map[string][]byte{}})
		}
		writes[len(writes)-1].files[name] = f.Data
	}
	return writes
}

func (w recordedWrite) replay(t *testing.T) {
	live := w.object(t, w.yaml(t, "live.yaml"), "owners.jsonl")
	in := Input{
		Live: live, After: w.object(t, patched(t, live, w.files["change.jsonl"]), ""),
		Subresource: w.subresource, Manager: testManager, Types: typesOf(t, strings.TrimSpace(string(w.files["schema"]))),
	}
	untouched := []*unstructured.Unstructured{in.Live.DeepCopy(), in.After.DeepCopy()}
	request, err := plan(in, ReasonKind(w.reason()))
	if err != nil {
		t.Fatal(err)
	}
	got := fmt.Sprintf("%s %s\n%s\n", request.Method, request.Reason.Kind, request.Body)
	if d := cmp.Diff(string(w.files["request"]), got); d != "" {
		t.Errorf("another request (%s) than recorded (-want +got):\n%s", request.Reason, d)
	}
	if _, ok := w.files["verdict"]; ok {
		answer := w.object(t, patched(t, request.Want, w.files["answer.jsonl"]), "answer-owners.jsonl")
		if d := cmp.Diff(string(w.files["verdict"]), judged(t, request, answer)); d != "" {
			t.Errorf("another verdict than recorded (-want +got):\n%s", d)
		}
	}
	if d := cmp.Diff(untouched, []*unstructured.Unstructured{in.Live, in.After}); d != "" {
		t.Errorf("the input was modified:\n%s", d)
	}
}

// plan plans as the writer did: some reasons only the server's answer gives.
func plan(in Input, why ReasonKind) (Request, error) {
	if why == ApplyRefused || why == ApplyLoses {
		return PlanJSONPatch(in, Reason{Kind: why})
	}
	return Plan(in)
}

func (w recordedWrite) reason() string {
	line, _, _ := strings.Cut(string(w.files["request"]), "\n")
	_, reason, _ := strings.Cut(line, " ")
	return reason
}

func judged(t *testing.T, request Request, answer *unstructured.Unstructured) string {
	t.Helper()
	said := Classify(request, answer)
	takeovers, err := Takeovers(request, answer)
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	if said.Unchanged {
		b.WriteString("unchanged\n")
	}
	for _, f := range said.Difference {
		fmt.Fprintf(&b, "%s %s\n", f.Class, f.Path)
	}
	for _, o := range takeovers {
		fmt.Fprintf(&b, "%s %s\n", o.Verdict, o)
	}
	return b.String()
}

func (w recordedWrite) yaml(t *testing.T, file string) []byte {
	t.Helper()
	text, err := yaml.YAMLToJSON(w.files[file])
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// object reads an object and gives it the owners of another file.
func (w recordedWrite) object(t *testing.T, text []byte, owners string) *unstructured.Unstructured {
	t.Helper()
	object := &unstructured.Unstructured{}
	if err := object.UnmarshalJSON(text); err != nil {
		t.Fatal(err)
	}
	object.SetResourceVersion("1")
	var entries []metav1.ManagedFieldsEntry
	for _, line := range lines(w.files[owners]) {
		var e metav1.ManagedFieldsEntry
		if err := json.Unmarshal(line, &e); err != nil {
			t.Fatal(err)
		}
		entries = append(entries, e)
	}
	if len(entries) > 0 {
		object.SetManagedFields(entries)
	}
	return object
}

// patched applies a JSON patch, one operation a line, by another implementation.
func patched(t *testing.T, object *unstructured.Unstructured, operations []byte) []byte {
	t.Helper()
	bare := object.DeepCopy()
	unstructured.RemoveNestedField(bare.Object, "metadata", "managedFields")
	text, err := json.Marshal(bare.Object)
	if err != nil {
		t.Fatal(err)
	}
	patch, err := jsonpatch.DecodePatch(slices.Concat([]byte("["), bytes.Join(lines(operations), []byte(",")), []byte("]")))
	if err != nil {
		t.Fatal(err)
	}
	text, err = patch.Apply(text)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func lines(text []byte) [][]byte {
	var out [][]byte
	s := bufio.NewScanner(bytes.NewReader(text))
	s.Buffer(nil, len(text)+1)
	for s.Scan() {
		out = append(out, slices.Clone(s.Bytes()))
	}
	return out
}

// builtInTypes knows the built-in types from client-go's own copy of their schemas.
var builtInTypes = sync.OnceValue(func() managedfields.TypeConverter {
	return applyconfigurations.NewTypeConverter(scheme.Scheme)
})

// typesOf gives the schema of a recording: "built-in", or a recorded OpenAPI
// document.
func typesOf(t *testing.T, name string) managedfields.TypeConverter {
	t.Helper()
	if name == "built-in" {
		return builtInTypes()
	}
	text, err := os.ReadFile(filepath.Join("testdata", filepath.FromSlash(name)))
	if err != nil {
		t.Fatal(err)
	}
	var d spec3.OpenAPI
	if err := json.Unmarshal(text, &d); err != nil {
		t.Fatal(err)
	}
	types, err := managedfields.NewTypeConverter(d.Components.Schemas, false)
	if err != nil {
		t.Fatal(err)
	}
	return types
}

// FuzzPlan: whatever the objects and their books are like, a plan is made or an
// error returned, the input stays as it is, and a JSON patch gives what was wanted.
func FuzzPlan(f *testing.F) {
	addSeeds(f)
	f.Fuzz(func(t *testing.T, liveText, afterText, fields string) {
		live, after := parsed(liveText), parsed(afterText)
		if live == nil || after == nil {
			t.Skip()
		}
		live.SetUID("u")
		live.SetResourceVersion("7")
		live.SetManagedFields([]metav1.ManagedFieldsEntry{
			entry(testManager, "Apply", "", fields), entry("argocd", "Apply", "", fields), entry("helm", "Update", "", fields),
		})
		before := live.DeepCopy()
		r, err := Plan(Input{Live: live, After: after, Manager: testManager, Types: builtInTypes()})
		if !equal(before.Object, live.Object) {
			t.Fatal("the live object was modified")
		}
		if err != nil || r.Method == None {
			return
		}
		Classify(r, after)
		if r.Method == JSONPatch {
			checkPatch(t, r)
		}
	})
}

func checkPatch(t *testing.T, r Request) {
	t.Helper()
	text, err := json.Marshal(r.Live.Object)
	if err != nil {
		t.Fatal(err)
	}
	patch, err := jsonpatch.DecodePatch(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	if text, err = patch.Apply(text); err != nil {
		t.Fatalf("%v\n%s", err, r.Body)
	}
	var got map[string]any
	if err := json.Unmarshal(text, &got); err != nil {
		t.Fatal(err)
	}
	if got, err = roundTrip(diff.WithoutBookkeeping(got)); err != nil {
		t.Fatal(err)
	}
	if !equal(got, r.Want.Object) {
		t.Errorf("patched %v\nwant    %v\nby      %s", got, r.Want.Object, r.Body)
	}
}

func parsed(text string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	if u.UnmarshalJSON([]byte(text)) != nil || u.IsList() {
		return nil
	}
	return u
}

// addSeeds takes objects and changes from the recordings.
func addSeeds(f *testing.F) {
	f.Helper()
	files, err := filepath.Glob(filepath.Join("testdata", "c*.txtar"))
	if err != nil {
		f.Fatal(err)
	}
	for _, file := range files {
		archive, err := txtar.ParseFile(file)
		if err != nil {
			f.Fatal(err)
		}
		var states []string
		for _, section := range archive.Files {
			if filepath.Base(section.Name) != "live.yaml" {
				continue
			}
			text, err := yaml.YAMLToJSON(section.Data)
			if err != nil {
				f.Fatal(err)
			}
			states = append(states, string(text))
		}
		if len(states) > 1 {
			f.Add(states[0], states[1], `{"f:metadata":{"f:labels":{"f:a":{}}},"f:spec":{"f:l":{"k:{\"name\":\"x\"}":{".":{}}}}}`)
		}
	}
}
