package compare

import (
	"math/rand/v2"
	"testing"

	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
)

// The writer of a field is the rule of the last one at, above or below it.
func TestWritersOf(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // it has to be repeatable
	path := func() fieldpath.Path {
		var p fieldpath.Path
		for range r.IntN(4) {
			name := string(rune('a' + r.IntN(2)))
			p = append(p, fieldpath.FieldNameElement(name))
		}
		return p
	}
	for range 300 {
		c := &engine.Change{}
		for i := range r.IntN(5) {
			c.Fields = append(c.Fields, engine.FieldChange{Path: path(), Rule: engine.RuleRef{Policy: string(rune('p' + i))}})
		}
		p := path()
		var want engine.RuleRef
		for i := range c.Fields {
			own := c.Fields[i].Path
			if n := min(len(own), len(p)); own[:n].Equals(p[:n]) {
				want = c.Fields[i].Rule
			}
		}
		if got := writersOf(c)(p); got != want {
			t.Fatalf("the writer of %v among %v is %v, want %v", p, c.Fields, got, want)
		}
	}
}
