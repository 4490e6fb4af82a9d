package human_test

import (
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/output/human"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/wording"
)

func TestCounterTop(t *testing.T) {
	var counts human.Counter
	for _, text := range []string{"b", "c", "a", "c"} {
		counts.Add(text)
	}
	top, rest := counts.Top(2)
	if diff := cmp.Diff([]wording.Count{{Text: "c", N: 2}, {Text: "a", N: 1}}, top); diff != "" || rest != 1 {
		t.Errorf("rest %d, -want +got:\n%s", rest, diff)
	}
}

func TestCounterIsBounded(t *testing.T) {
	var counts human.Counter
	for i := range 100_000 {
		counts.Add(strconv.Itoa(i))
	}
	counts.Add("0")
	top, rest := counts.Top(100_000)
	if len(top) > 1000 || top[0] != (wording.Count{Text: "0", N: 2}) || counts.Total() != 100_001 {
		t.Errorf("%d texts, the first %v, total %d", len(top), top[0], counts.Total())
	}
	if rest+len(top)+1 != counts.Total() {
		t.Errorf("%d texts and a rest of %d", len(top), rest)
	}
}
