package engine_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
)

// What a draft says of the values of a map is so, whatever steps have made of it.
func TestOfTexts(t *testing.T) {
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 0))
		d := &engine.Draft{}
		m := map[string]any{"a": "1"}
		committed := m
		for range 40 {
			name := fmt.Sprint(r.IntN(4))
			switch r.IntN(6) {
			case 0:
				m = d.Set(m, name, int64(1))
			case 1:
				m = d.Delete(m, name)
			case 2:
				d.Revert()
				m = committed
			case 3:
				d.Commit()
				committed = m
			case 4:
				d.OfTexts(map[string]any{name: "of another map"})
			default:
				m = d.Set(m, name, "text")
			}
			want := true
			for _, value := range m {
				_, isText := value.(string)
				want = want && isText
			}
			if r.IntN(2) == 0 && d.OfTexts(m) != want {
				t.Fatalf("seed %d: of texts is %t: %v", seed, !want, m)
			}
		}
	}
}

// A draft looks once at a map and all that it makes of it.
func TestOfTextsLooksOnce(t *testing.T) {
	d := &engine.Draft{}
	m, other := map[string]any{"a": "1"}, map[string]any{"a": "1"}
	d.OfTexts(m)
	m["a"] = int64(1) // behind its back
	for i := range 10 {
		m = d.Set(m, fmt.Sprint(i), "text")
		d.OfTexts(other)
		d.Commit()
		if !d.OfTexts(m) {
			t.Fatalf("step %d looks at the values again", i)
		}
	}
}

// What a draft finds in a list is what a look at each element finds, whatever steps have made of the list.
func TestFind(t *testing.T) {
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 0))
		element := func() any {
			value := any(fmt.Sprint(r.IntN(40)))
			if r.IntN(200) == 0 {
				value = []any{1.5, int64(1), map[string]any{}}[r.IntN(3)]
			}
			if seed%2 == 1 {
				return map[string]any{"name": value}
			}
			return value
		}
		name := []string{"", "name"}[seed%2]
		d := &engine.Draft{}
		list := make([]any, 0, 30)
		for range 10 + r.IntN(20) {
			list = append(list, element())
		}
		earlier := [][]any{list}
		for range 60 {
			switch r.IntN(8) {
			case 0:
				list = d.Append(list, element())
			case 1:
				list = d.Prepend(list, element(), element())
			case 2:
				list = slices.Clone(list)
			case 3:
				list = earlier[r.IntN(len(earlier))] // as where a step is reverted
			}
			earlier = append(earlier, list)
			value := any(fmt.Sprint(r.IntN(40)))
			want := slices.IndexFunc(list, func(e any) bool {
				if m, isMap := e.(map[string]any); isMap && name != "" {
					e = m[name]
				}
				_, isMap := e.(map[string]any)
				return !isMap && e == value
			})
			if i, certain := d.Find(list, name, value); certain && i != want {
				t.Fatalf("seed %d: found %v at %d, want %d of %v", seed, value, i, want, list)
			}
		}
	}
}

// A list that is asked about again and again is looked through twice, whether the draft has made it or not.
func TestFindLooksOnce(t *testing.T) {
	d := &engine.Draft{}
	list := make([]any, 100)
	for i := range list {
		list[i] = fmt.Sprint(i)
	}
	for range 2 {
		d.Find(list, "", "99")
	}
	list[99] = "behind its back"
	if i, certain := d.Find(list, "", "99"); i != 99 || !certain {
		t.Errorf("looks at the list again: %d, %t", i, certain)
	}
	list = d.Prepend(list, "x")
	if i, certain := d.Find(list, "", "99"); i != 100 || !certain {
		t.Errorf("looks again at a list that was made of it: %d, %t", i, certain)
	}
}
