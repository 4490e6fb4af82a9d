package engine_test

import (
	"fmt"
	"math/rand/v2"
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
