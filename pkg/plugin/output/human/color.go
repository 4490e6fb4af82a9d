package human

// Color is what a terminal begins to write in a color with.
type Color string

// The colors.
const (
	Plain  Color = ""
	Bold   Color = "\x1b[1m"
	Red    Color = "\x1b[31m"
	Green  Color = "\x1b[32m"
	Yellow Color = "\x1b[33m"
	Cyan   Color = "\x1b[36m"

	reset = "\x1b[0m"
)

// Painter paints if it is true, and leaves texts as they are otherwise.
type Painter bool

// Paint writes a text in a color.
func (p Painter) Paint(c Color, text string) string {
	if !p || c == Plain || text == "" {
		return text
	}
	return string(c) + text + reset
}
