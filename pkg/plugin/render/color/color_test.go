package color_test

import (
	"testing"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/render/color"
)

func TestOnlyAPainterThatPaintsColorsText(t *testing.T) {
	for _, c := range []struct {
		painter    color.Painter
		color      color.Color
		text, want string
	}{
		{true, color.Red, "no", "\x1b[31mno\x1b[0m"},
		{true, color.Plain, "no", "no"},
		{true, color.Red, "", ""},
		{false, color.Red, "no", "no"},
	} {
		if got := c.painter.Paint(c.color, c.text); got != c.want {
			t.Errorf("%v paints %q in %q as %q, want %q", c.painter, c.text, c.color, got, c.want)
		}
	}
}
