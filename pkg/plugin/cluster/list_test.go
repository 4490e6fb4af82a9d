package cluster_test

import (
	_ "embed"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/json"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/cluster"
)

func TestSplitReadsWhatASelectionNeeds(t *testing.T) {
	list, err := cluster.SplitRawList([]byte(`{"kind":"PodList","apiVersion":"v1",
		"metadata":{"resourceVersion":"7","continue":"next","remainingItemCount":1},
		"items":[
			{"metadata":{"name":"web","namespace":"shop","uid":"u1","labels":{"a/b":"c\"d"},
				"managedFields":[{"fieldsV1":{"f:metadata":{}}}],
				"ownerReferences":[{"name":"x","controller":false},{"controller": true }]},
			 "spec":{"note":"]}\\\"{[","n":1}},
			{"spec":{"metadata":{"name":"not mine"}},"metadata":{"name":"db"}}
		]}`))
	if err != nil {
		t.Fatal(err)
	}
	type facts struct {
		Namespace, Name, UID string
		Labels               map[string]string
		Controlled           bool
	}
	var got []facts
	for _, i := range list.Items {
		got = append(got, facts{i.Namespace, i.Name, i.UID, i.Labels, i.Controlled})
	}
	want := []facts{
		{Namespace: "shop", Name: "web", UID: "u1", Labels: map[string]string{"a/b": `c"d`}, Controlled: true},
		{Name: "db"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if list.Continue != "next" || list.Remaining != 1 {
		t.Errorf("continue token is %q, and %d objects follow", list.Continue, list.Remaining)
	}
	object, err := list.Items[0].Decode()
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]any{"note": `]}\"{[`, "n": int64(1)}, object["spec"]); diff != "" {
		t.Error(diff)
	}
}

func TestDecodeManagedFields(t *testing.T) {
	for _, fields := range []string{
		`{}`, `{"f:metadata":{"f:labels":{".":{},"f:app":{}}}}`, `{ "f:spec" : { "k:{\"name\":\"a}\"}" : {} , ".":{} } }`,
		`{"f:long":{"f:` + strings.Repeat("x", 2000) + `":{".":{}}},".":{}}`, `{"v:\"\\\\\"":{},"v:\u007b":{}}`, `{"a":{"b":[{"c":{}},{"c":{}}]},"d":1}`,
		`{"fieldsV1":{"a":{}}}`, `{"a":{}`, `{"a":{"b":}}`, `{"a":{"b" "c"}}`, `{"a":{"b":{}]}`, `{"a":[{}}]`, `null`, `{"\ud800":{}}`, `{"a":{},"a":{"b":{}}}`,
	} {
		agree(t, `{"metadata":{"name":"a","managedFields":[{"manager":"x","fieldsV1":`+fields+`},{"fieldsV1":`+fields+`,"time":"now"}]},"spec":{"fieldsV1":`+fields+`}}`)
	}
}

func TestSplitRemaining(t *testing.T) {
	for body, want := range map[string]int64{
		`{"items":[],"metadata":{"continue":"next","remainingItemCount":9500}}`: 9500,
		`{"items":[],"metadata":{"continue":"next"}}`:                           -1,
		`{"items":[],"metadata":{"continue":"next","remainingItemCount":"x"}}`:  -1,
		`{"items":[],"metadata":{}}`:                                            0,
	} {
		if list, err := cluster.SplitRawList([]byte(body)); err != nil || list.Remaining != want {
			t.Errorf("%s: got %d, %v", body, list.Remaining, err)
		}
	}
}

func TestSplitTakesListsWithoutItems(t *testing.T) {
	for _, body := range []string{`{"items":null}`, `{"items":[],"metadata":null}`, ` { "items" : [ ] } `} {
		if list, err := cluster.SplitRawList([]byte(body)); err != nil || len(list.Items) != 0 {
			t.Errorf("%s: %d items, %v", body, len(list.Items), err)
		}
	}
}

func TestSplitRefusesBrokenText(t *testing.T) {
	for _, body := range []string{
		``, `null`, `[]`, `{}`, `{"items":{}}`, `{"kind":"Status"}`, `{`, `{"items"`, `{"items":[`, `{"items":[{]}`, `{"items":[{}`, `{"items":[{"metadata":{"name":"x`,
		`{"items":[1]}`, `{"a":1 "b":2}`, `{"a":"\`, `{1:2}`,
	} {
		if _, err := cluster.SplitRawList([]byte(body)); err == nil {
			t.Errorf("%s: no error", body)
		}
	}
}

// decodeCases are texts on which a decoder may go wrong; the fuzz test starts there.
func decodeCases() []string {
	return []string{
		`{}`, `{"a":{"b":[1,-2,0,-0,1.5,1e3,1E400,9223372036854775807,9223372036854775808,-9223372036854775809,123456789012345678901234567890]}}`,
		`{"a":"\u00e9\n\ud83d\ude00","b":"é😀","c":"\ud800","d":"` + "\xff" + `","e":"` + "\x01" + `"}`,
		`{"a":true,"b":false,"c":null,"d":[],"e":{},"f":""}`,
		`{"a":01}`, `{"a":-}`, `{"a":1.}`, `{"a":.5}`, `{"a":+1}`, `{"a":tru}`, `{"a":1,}`, `{"a":[1,]}`, `{"a" 1}`, `{"a":1}x`, `{"a":1}{}`, "{}\x00",
		`{"a":1,"a":{"b":2},"a":{"c":3}}`, `{"\u0061":1}`, " {\t\"a\"\r\n: 1 } ", `{"a":1 2}`, `{"a":"x"y}`, `{"a":}`, `{,}`,
	}
}

func TestDecodeAgreesWithApimachinery(t *testing.T) {
	for _, text := range decodeCases() {
		agree(t, text)
	}
	for _, depth := range []int{9_998, 9_999, 10_000, 10_001, 100_000} {
		agree(t, `{"a":`+strings.Repeat("[", depth)+strings.Repeat("]", depth)+`}`)
	}
}

func FuzzDecode(f *testing.F) {
	for _, text := range decodeCases() {
		f.Add(text)
	}
	f.Fuzz(agree)
}

// agree checks that an object decodes as apimachinery decodes it, or fails as there.
func agree(t *testing.T, text string) {
	t.Helper()
	if !strings.HasPrefix(strings.TrimLeft(text, " \t\r\n"), "{") {
		return // apimachinery reads null as an object
	}
	var want map[string]any
	wantErr := json.Unmarshal([]byte(text), &want)
	item, err := cluster.ReadRawItem([]byte(text))
	if err != nil {
		if wantErr == nil {
			t.Errorf("%.200q: read failed: %v", text, err)
		}
		return
	}
	got, err := item.Decode()
	if (err == nil) != (wantErr == nil) {
		t.Fatalf("%.200q: got error %v, apimachinery says %v", text, err, wantErr)
	}
	if wantErr == nil && !reflect.DeepEqual(want, got) { // go-cmp takes exponential time on deep nesting
		t.Fatalf("%.200q: got %.200v, want %.200v", text, got, want)
	}
	list, listErr := cluster.SplitRawList([]byte(`{"items":[` + text + `,` + text + `]}`))
	for _, item := range list.Items { // which share what they can
		if got, err := item.Decode(); listErr == nil && (err == nil) != (wantErr == nil) || wantErr == nil && !reflect.DeepEqual(want, got) {
			t.Fatalf("%.200q in a list: got %.200v, %v; want %.200v, %v", text, got, err, want, wantErr)
		}
	}
}

func TestObjectsOfAPageShareManagedFields(t *testing.T) {
	list, err := cluster.SplitRawList(podList(2))
	if err != nil {
		t.Fatal(err)
	}
	alone, err := cluster.ReadRawItem([]byte(pod))
	if err != nil {
		t.Fatal(err)
	}
	allocations := func(i cluster.RawItem) float64 {
		return testing.AllocsPerRun(10, func() {
			if _, err := i.Decode(); err != nil {
				t.Error(err)
			}
		})
	}
	if a, b := allocations(alone), allocations(list.Items[1]); b > a*2/3 {
		t.Errorf("an object of a page makes %v allocations, and one alone %v", b, a)
	}
}

//go:embed testdata/pod.json
var pod string

// podList is a page of n Pods as a server sends it.
func podList(n int) []byte {
	return []byte(`{"kind":"PodList","apiVersion":"v1","metadata":{},"items":[` +
		strings.Repeat(pod+",", n-1) + pod + `]}`)
}

func BenchmarkSplit500Pods(b *testing.B) {
	body := podList(500)
	b.SetBytes(int64(len(body)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := cluster.SplitRawList(body); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkDecode500Pods(b *testing.B) {
	body := podList(500)
	b.SetBytes(int64(len(body)))
	b.ReportAllocs()
	for b.Loop() {
		list, err := cluster.SplitRawList(body)
		if err != nil {
			b.Fatal(err)
		}
		for _, item := range list.Items {
			if _, err := item.Decode(); err != nil {
				b.Fatal(err)
			}
		}
	}
}

// BenchmarkDecode500PodsApimachinery is what unstructured.UnstructuredList costs.
func BenchmarkDecode500PodsApimachinery(b *testing.B) {
	body := podList(500)
	b.SetBytes(int64(len(body)))
	b.ReportAllocs()
	for b.Loop() {
		var list map[string]any
		if err := json.Unmarshal(body, &list); err != nil {
			b.Fatal(err)
		}
	}
}
