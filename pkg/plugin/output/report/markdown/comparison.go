package markdown

import (
	"bytes"
	"io"
	"strings"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/output"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/output/human"
)

// NewComparison returns a printer of a page of what two sets of policies do not do alike, no longer than MaxBytes.
// Of the objects it holds no more than that.
func NewComparison(o output.Options) *Comparison {
	p := &Comparison{out: o.Out, objects: pages{limit: MaxBytes, room: MaxBytes}}
	o.Out = &p.parts
	p.inner = human.NewComparison(o, "markdown")
	p.parts.objects = &p.objects
	return p
}

// Comparison is the page. It is written at the end.
type Comparison struct {
	out     io.Writer
	inner   *human.Comparison // writes a part at a time
	parts   parts
	objects pages
}

// parts takes what a printer writes: objects, at the end an overview before those that are left, and last what was
// exercised.
type parts struct {
	objects  *pages
	ending   bool
	overview []byte
	last     []byte
}

// Write takes a part.
func (p *parts) Write(b []byte) (int, error) {
	if p.last != nil {
		_, _ = p.objects.Write(p.last) // which keeps it, or not
		p.last = nil
	}
	if p.ending && p.overview == nil {
		p.overview = bytes.Clone(b)
	} else {
		p.last = bytes.Clone(b)
	}
	return len(b), nil
}

// Print adds an event to the page.
func (p *Comparison) Print(s output.Shown) error {
	_, p.parts.ending = s.Event().(output.Comparison)
	return p.inner.Print(s)
}

// Close writes the page: the overview, as many of the objects as there is room for, and what was exercised.
func (p *Comparison) Close() error {
	var b bytes.Buffer
	last := strings.TrimLeft(string(p.parts.last), "\n")
	b.WriteString(fit(strings.TrimLeft(string(p.parts.overview), "\n"), MaxBytes/4)) //nolint:mnd // errors are in it
	room := max(MaxBytes-b.Len()-reserve-len(last), MaxBytes/4)                      //nolint:mnd // what was exercised may be cut, too
	b.WriteString(p.objects.fill(&b, b.Len()+room, "difference", "fields", "differ"))
	if last != "" {
		b.WriteString("\n" + fit(last, MaxBytes-b.Len()-1))
	}
	_, err := p.out.Write(b.Bytes())
	return err
}
