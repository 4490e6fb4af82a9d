package human_test

import (
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
