package human

import (
	"cmp"
	"slices"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/wording"
)

// Counter counts texts. The zero value is empty and ready for use.
type Counter struct {
	counts map[string]int
	total  int
}

// Add counts a text once more.
func (t *Counter) Add(text string) {
	t.total++
	if t.counts == nil {
		t.counts = map[string]int{}
	}
	t.counts[text]++
}

// Top lists the most frequent texts, at most so many, and how many additions it
// leaves out. Texts that are as frequent come in alphabetical order.
func (t *Counter) Top(most int) (top []wording.Count, rest int) {
	for text, n := range t.counts {
		top = append(top, wording.Count{N: n, Text: text})
	}
	slices.SortFunc(top, func(a, b wording.Count) int {
		return cmp.Or(cmp.Compare(b.N, a.N), cmp.Compare(a.Text, b.Text))
	})
	top = top[:min(most, len(top))]
	rest = t.total
	for _, c := range top {
		rest -= c.N
	}
	return top, rest
}
