package human

import (
	"cmp"
	"slices"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/wording"
)

// maxTexts bounds how many different texts are counted separately.
const maxTexts = 1000

// Counter counts texts. The zero value is empty and ready for use.
type Counter struct {
	counts map[string]int
	total  int
}

// Add counts a text once more. Beyond a bound of different texts, new ones count
// towards the total alone.
func (t *Counter) Add(text string) {
	t.total++
	if _, known := t.counts[text]; !known && len(t.counts) >= maxTexts {
		return
	}
	if t.counts == nil {
		t.counts = map[string]int{}
	}
	t.counts[text]++
}

// Total is how many texts were added.
func (t *Counter) Total() int { return t.total }

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
