package human

import (
	"bytes"
	"cmp"
	"fmt"
	"strings"
	"text/tabwriter"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/redact"
)

// page is text for people, and the one place where it is escaped: nothing that is
// written to it acts on a terminal or a CI runner, or forges a line.
type page struct {
	bytes.Buffer
	painter Painter
}

// line writes a text as one line.
func (p *page) line(c Color, text string) {
	p.WriteString(p.painter.Paint(c, redact.EscapeLine(text)))
	p.WriteByte('\n')
}

// diff writes a unified diff in colors. It is escaped already, so that what is
// compared is what is shown.
func (p *page) diff(unified string) {
	p.Grow(len(unified))
	for l := range strings.Lines(unified) {
		content, newline := strings.CutSuffix(l, "\n")
		p.WriteString(p.painter.Paint(lineColor(content), content))
		if newline {
			p.WriteByte('\n')
		}
	}
}

// middle leaves out the middle of a text of more bytes than that: the beginning of a rule names its policy, and the end
// of a path its field.
func middle(text string, most int) string {
	if len(text) <= most {
		return text
	}
	half := (most - len("...")) / 2
	return strings.ToValidUTF8(text[:most-len("...")-half], "") + "..." + strings.ToValidUTF8(text[len(text)-half:], "")
}

// table writes rows whose columns stand in line.
func (p *page) table(rows [][]string) {
	w := tabwriter.NewWriter(p, 0, 0, 3, ' ', 0)
	for _, row := range rows {
		fmt.Fprintln(w, strings.TrimRight(cells(row...), "\t"))
	}
	_ = w.Flush() // a page takes everything
}

// filled are the texts of a row, with another in the place of empty ones.
func filled(texts []string, empty string) []string {
	for i := range texts {
		texts[i] = cmp.Or(texts[i], empty)
	}
	return texts
}

// cells are the texts of a row whose columns a tabwriter lines up.
func cells(texts ...string) string {
	for i, text := range texts {
		texts[i] = redact.EscapeLine(text)
	}
	return strings.Join(texts, "\t")
}

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
