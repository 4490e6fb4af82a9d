package fleet

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/value"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/compare"
)

// sample is a record with every kind of value that a codec knows.
func sample(rules []engine.RuleRef) *record {
	shared := map[string]any{"name": "x", "list": []any{int64(math.MinInt64), 1.5, true, false, nil, strings.Repeat("long", maxWord)}}
	before := &unstructured.Unstructured{Object: map[string]any{"kind": "ConfigMap", "a": shared, "empty": []any{}, "none": map[string]any{}}}
	after := &unstructured.Unstructured{Object: map[string]any{"kind": "ConfigMap", "a": shared, "invalid": "\xff\x00\n"}}
	key := value.FieldList{{Name: "name", Value: value.NewValueInterface("x")}, {Name: "port", Value: value.NewValueInterface(int64(80))}}
	change := &engine.Change{
		Subject: engine.ObjectKey{Version: "v1", Name: "one", UID: "u-1"}, Before: before, After: after, Scoped: true,
		Fields: []engine.FieldChange{
			{Path: fieldpath.MakePathOrDie("a", 3, &key, value.NewValueInterface("v")), Kind: engine.Replaced, From: int64(0), To: shared, Rule: rules[0], SecretFrom: 2},
			{Path: fieldpath.Path{}, Secret: true},
		},
		Steps: []engine.Step{
			{Rule: rules[1], Outcome: engine.Failed, Err: &stepError{"it fails on shop/one", "it fails"}, Warnings: []engine.Warning{"w"}, Fields: []engine.FieldChange{}},
		},
		NotMatched: engine.RuleSet{Rules: rules[:1], Lists: []engine.RuleList{{List: rules, Except: []int{1}}, {List: rules[:1]}}},
		Impacts:    []engine.Impact{{Code: engine.ImpactRollout, Fields: []fieldpath.Path{fieldpath.MakePathOrDie("a")}, Pods: -3}},
	}
	same := &engine.Change{Before: before, After: before}
	return &record{change, &compare.Result{
		Verdict: compare.Differs, Operations: []engine.Operation{"UPDATE"}, Everywhere: true, Changes: [2]*engine.Change{same, change},
		Fields:  []compare.Field{{FieldChange: change.Fields[0], Rules: [2]engine.RuleRef{rules[1], rules[0]}}},
		Variant: &compare.Variant{Count: 1 << 40, Kinds: []string{"apps/Deployment"}, Object: after, Beside: []*unstructured.Unstructured{before, nil}},
	}}
}

var comparing = cmp.Options{
	cmp.Comparer(func(a, b fieldpath.PathElement) bool { return a.Equals(b) }),
	cmp.AllowUnexported(stepError{}),
	cmp.FilterPath(func(p cmp.Path) bool { return p.Last().String() == ".lanes" }, cmp.Ignore()),
}

func TestCodec(t *testing.T) {
	for _, full := range []bool{false, true} {
		var c codec
		if full { // then all is in the bytes
			c.words, c.lists = make([]string, maxWords), make([][]engine.RuleRef, maxLists)
		}
		rules := []engine.RuleRef{{Dialect: "kyverno", Policy: "p", Rule: "r", Origin: "p.yaml:3"}, {Policy: "q", Severity: "high"}}
		want := sample(rules)
		text, err := c.encode(nil, want)
		if err != nil {
			t.Fatal(err)
		}
		again, err := c.encode([]byte("before"), want)
		if err != nil || len(again) != len("before")+len(text) && !full {
			t.Errorf("again: %d bytes, not %d, error %v", len(again), len(text), err)
		}
		var got *record
		if err := c.decode(text, &got); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got, comparing); diff != "" {
			t.Errorf("full %v: -want +got:\n%s", full, diff)
		}
		e := got.Evaluated
		if !engine.Identical(e.Before.Object["a"], e.After.Object["a"]) || !engine.Identical(e.Before.Object["a"], e.Fields[0].To) {
			t.Error("what states share is there twice")
		}
		if r := got.Compared; r.Changes[0].Before != r.Changes[0].After || r.Variant.Object != e.After {
			t.Error("an object is there twice")
		}
		if l := e.NotMatched.Lists; !full && &l[0].List[0] != &rules[0] {
			t.Error("a list of rules is copied")
		}
		for i := range text {
			var part *record
			if err := c.decode(text[:i], &part); !errors.Is(err, errShort) {
				t.Fatalf("the first %d bytes: %v", i, err)
			}
			damaged := append([]byte(nil), text...)
			damaged[i] ^= 0xff
			_ = c.decode(damaged, &part) // does not panic
		}
	}
}

// What a codec remembers is bounded, whatever it is given.
func TestCodecIsBounded(t *testing.T) {
	var c codec
	for i := range maxWords * 2 {
		list := engine.RuleList{List: []engine.RuleRef{{Policy: fmt.Sprint("p", i)}}}
		text, err := c.encode(nil, list)
		var got engine.RuleList
		if err := errors.Join(err, c.decode(text, &got)); err != nil || !cmp.Equal(list, got) {
			t.Fatalf("%d: got %+v, %v", i, got, err)
		}
		if _, err := c.encode(nil, strings.Repeat("x", maxWord+1)); err != nil {
			t.Fatal(err)
		}
	}
	if len(c.words) > maxWords || len(c.places) > maxWords || len(c.lists) > maxLists || len(c.known) > maxLists {
		t.Errorf("%d words, %d lists", len(c.words), len(c.lists))
	}
	for _, one := range c.words {
		if len(one) > maxWord {
			t.Errorf("a word of %d bytes", len(one))
		}
	}
	if _, err := c.encode(nil, struct{ C chan int }{make(chan int)}); err == nil {
		t.Error("a channel is kept")
	}
}

func BenchmarkCodec(b *testing.B) {
	var c codec
	r := sample([]engine.RuleRef{{Policy: "p"}, {Policy: "q"}})
	for b.Loop() {
		text, err := c.encode(nil, r)
		var got *record
		if err := errors.Join(err, c.decode(text, &got)); err != nil {
			b.Fatal(err)
		}
	}
}
