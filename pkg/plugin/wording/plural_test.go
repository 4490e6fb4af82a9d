package wording_test

import (
	"testing"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/wording"
)

func TestOf(t *testing.T) {
	for _, c := range []struct {
		n    int
		noun string
		want string
	}{
		{0, "object", "0 objects"},
		{1, "object", "1 object"},
		{2, "object", "2 objects"},
		{1, "rule or policy", "1 rule or policy"},
		{2, "rule or policy", "2 rule or policies"},
	} {
		if got := wording.Plural(c.n, c.noun); got != c.want {
			t.Errorf("Of(%d, %q) = %q, want %q", c.n, c.noun, got, c.want)
		}
	}
}
