package mutatingpolicy_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"iter"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/cel-go/common/types/ref"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/cel"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/limit"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/mutatingpolicy"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/policydecode"
)

var noon = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

// evaluate gives the value of an expression about object, in a world.
func evaluate(t *testing.T, w *engine.World, expression string, object map[string]any) (ref.Val, *mutatingpolicy.Session, error) {
	t.Helper()
	environment, err := cel.NewEnvironment(cel.Options{PatchTypes: true, Extensions: mutatingpolicy.LibraryOptions(false)})
	if err != nil {
		t.Fatal(err)
	}
	scope := environment.NewScope(func(_ policydecode.Node, err error) { t.Fatal(err) })
	x := scope.Values([]cel.Source{{Text: expression}})[0]
	s := mutatingpolicy.NewSession(t.Context(), w, mutatingpolicy.SessionSettings{Seed: w.Seed, Entries: &mutatingpolicy.Entries{}})
	v, err := scope.Evaluate(t.Context(), cel.Input{Object: object, Extra: s.Bindings()}, cel.MutationBudget).Value(x)
	return v, s, err
}

func world() *engine.World { return &engine.World{Now: noon, Seed: 7} }

func TestRandomRepeatsWithItsSeed(t *testing.T) {
	text := func(seed uint64) any {
		w := world()
		w.Seed = seed
		v, _, err := evaluate(t, w, `random() + "-" + random.random() + "-" + random("[A-F]{8}")`, nil)
		if err != nil {
			t.Fatal(err)
		}
		return v.Value()
	}
	if text(1) != text(1) || text(1) == text(2) {
		t.Errorf("%v and %v for one seed, %v for another", text(1), text(1), text(2))
	}
	if !regexp.MustCompile("^[0-9a-z]{8}-[0-9a-z]{8}-[A-F]{8}$").MatchString(text(1).(string)) {
		t.Errorf("%v does not match the patterns", text(1))
	}
	if parts := strings.Split(text(1).(string), "-"); parts[0] == parts[1] {
		t.Errorf("the second value repeats the first: %v", parts)
	}
}

func TestClockStandsStill(t *testing.T) {
	v, _, err := evaluate(t, world(), "time.now() == time.now() && time.now() == timestamp('2026-01-02T12:00:00Z')", nil)
	if err != nil || v.Value() != true {
		t.Errorf("%v, %v", v, err)
	}
}

func TestDecompressIsBounded(t *testing.T) {
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	for range 64 {
		if _, err := w.Write(make([]byte, 1<<20)); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	object := map[string]any{"bomb": packed.Bytes(), "long": strings.Repeat(" ", 2<<20+1)}
	for expression, want := range map[string]string{
		"gzip.decompress(object.bomb)":                "bytes of unpacked data",
		"gzip.decompress(b'no gzip')":                 "gzip.decompress",
		"json.unmarshal(object.long)":                 "bytes of text to parse",
		"yaml.parse(object.long)":                     "bytes of text to parse",
		"json.unmarshal('{')":                         "json.unmarshal",
		"yaml.parse('a: [')":                          "yaml.parse",
		"x509.decode('no certificate')":               "PEM",
		"http.get('a b').x":                           "--allow-http",
		"image.GetMetadata('nginx').x":                "--allow-registry",
		"globalContext.get('entry').x":                "no cluster to read it from",
		"resource.get('v1','pods','','p')":            "no cluster",
		"resource.toGVR('v1', 'Pod') != null ? 1 : 2": "no cluster",
	} {
		_, s, err := evaluate(t, world(), expression, object)
		if s.Missing != nil {
			err = errors.Join(err, s.Missing)
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want one with %q", expression, err, want)
		}
	}
}

// many serves as many objects as it is asked for, and counts the requests.
type many struct {
	engine.Reader
	objects, lists int
}

func (m *many) List(context.Context, engine.Selection) iter.Seq2[*unstructured.Unstructured, error] {
	m.lists++
	return func(yield func(*unstructured.Unstructured, error) bool) {
		for i := range m.objects {
			u := &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"name": fmt.Sprint(i)}}}
			if !yield(u, nil) {
				return
			}
		}
	}
}

func TestListsAreBoundedAndReadOnce(t *testing.T) {
	mapper := meta.NewDefaultRESTMapper(nil)
	mapper.Add(schema.GroupVersionKind{Version: "v1", Kind: "Pod"}, meta.RESTScopeNamespace)
	reader := &many{objects: limit.Elements}
	w := world()
	w.Reader, w.Mapper, w.Memo = reader, mapper, &engine.Memo{}
	expression := `size(dyn(resource.list("v1", "pods", "")).items) + size(dyn(resource.List("v1", "pods", "")).items)`
	v, _, err := evaluate(t, w.Watched(), expression, nil)
	if err != nil || v.Value() != int64(2*limit.Elements) || reader.lists != 1 {
		t.Errorf("%v, %v after %d requests; want 20000 after one", v, err, reader.lists)
	}
	reader.objects, w.Memo = limit.Elements+1, &engine.Memo{}
	if _, _, err = evaluate(t, w, expression, nil); err == nil || !strings.Contains(err.Error(), "limit of 10000 objects in one list") {
		t.Errorf("error %v, want the limit", err)
	}
}
