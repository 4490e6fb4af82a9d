package dialects_test

import (
	"context"
	"iter"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubectl-mutate/kubectl-mutate/internal/conformance"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/dialects"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/snapshot"
)

// counting counts how often it reads an object, a list or a path.
type counting struct {
	*snapshot.Snapshot
	reads map[string]int
}

func (c counting) Get(ctx context.Context, k engine.ObjectKey) (*unstructured.Unstructured, error) {
	c.reads[k.String()]++
	return c.Snapshot.Get(ctx, k)
}

func (c counting) List(ctx context.Context, s engine.Selection) iter.Seq2[*unstructured.Unstructured, error] {
	c.reads["the list of "+s.String()]++
	return c.Snapshot.List(ctx, s)
}

func (c counting) Raw(ctx context.Context, method, path string, body []byte) ([]byte, error) {
	c.reads[method+" "+path]++
	return c.Snapshot.Raw(ctx, method, path, body)
}

type noSteps struct{}

func (noSteps) Wants(engine.Outcome) bool { return false }

func (noSteps) Step(engine.Step) {}

// What policies ask for is read once in a run, whatever their language, and so is a Namespace that did not
// come with the objects in it, as where the user may not list Namespaces.
func TestEachReadIsMadeOnce(t *testing.T) {
	for file, want := range map[string]map[string]int{
		"namespaces": {"Namespace shop": 1, "Namespace absent": 1},
		"reads":      {"ConfigMap shop/settings": 1},
		"requests":   {"GET /api/v1/namespaces/shop/configmaps/settings": 1, "the list of ConfigMap in shop": 1, "the list of ConfigMap in shop with app=shop": 1},
	} {
		t.Run(file, func(t *testing.T) { testReads(t, "testdata/"+file+".txtar", want) })
	}
}

func testReads(t *testing.T, file string, want map[string]int) {
	archive, err := txtar.ParseFile(file)
	if err != nil {
		t.Fatal(err)
	}
	objects, labels := conformance.ReadObjects(t, string(archive.Files[1].Data)), string(archive.Files[2].Data)
	s, err := snapshot.Load(engine.Documents(objects...), snapshot.Options{})
	if err != nil {
		t.Fatal(err)
	}
	reader := counting{s, map[string]int{}}
	w := &engine.World{Reader: reader, Raw: reader, Mapper: s.Mapper(), Memo: &engine.Memo{}}
	w = w.Watched()
	programs := compile(t, archive.Files[0].Data)
	var got strings.Builder
	for _, u := range objects[1:] {
		target := engine.Target{Key: engine.KeyOf(u), Object: u, OldObject: u}
		for _, p := range programs {
			mutated, err := p.Evaluate(t.Context(), target, w, noSteps{})
			if err != nil {
				t.Fatal(err)
			}
			target = target.With(mutated)
		}
		keys := slices.Sorted(maps.Keys(target.Object.GetLabels()))
		got.WriteString(strings.TrimSpace(u.GetNamespace()+"/"+u.GetName()+": "+strings.Join(keys, " ")) + "\n")
	}
	if diff := cmp.Diff(labels, got.String()); diff != "" {
		t.Error("(-want +got):\n" + diff)
	}
	if diff := cmp.Diff(want, reader.reads); diff != "" {
		t.Error("reads (-want +got):\n" + diff)
	}
}

// compile compiles each document in the languages that accept it.
func compile(t *testing.T, policies []byte) []engine.Program {
	t.Helper()
	objects := conformance.ReadObjects(t, string(policies))
	var out []engine.Program
	for _, d := range dialects.All() {
		c := engine.Compilation{Warn: func(e engine.CompileError) { t.Log(&e) }}
		for _, u := range objects {
			if d.Accepts(u.GroupVersionKind().GroupKind()) != engine.Foreign {
				c.Documents = append(c.Documents, engine.NewDocument(u, ""))
			}
		}
		p, err := d.Compile(c)
		if err != nil || len(p.Rules()) != 1 {
			t.Fatalf("%s has %v: %v", d.Name(), p.Rules(), err)
		}
		out = append(out, p)
	}
	return out
}
