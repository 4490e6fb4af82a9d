package human_test

import (
	"testing"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/output/human"
)

func TestPainter(t *testing.T) {
	for _, c := range []struct {
		painter    human.Painter
		color      human.Color
		text, want string
	}{
		{true, human.Red, "no", "\x1b[31mno\x1b[0m"},
		{true, human.Plain, "no", "no"},
		{true, human.Red, "", ""},
		{false, human.Red, "no", "no"},
	} {
		if got := c.painter.Paint(c.color, c.text); got != c.want {
			t.Errorf("%v paints %q in %q as %q, want %q", c.painter, c.text, c.color, got, c.want)
		}
	}
}
