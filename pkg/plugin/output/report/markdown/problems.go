package markdown

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/output/report"
)

// maxProblems bounds how many problems are listed.
const maxProblems = 20

// problems are what went wrong beside the objects.
type problems struct {
	lines   []string
	leftOut int
}

func (p *problems) add(problem report.Problem) {
	if len(p.lines) == maxProblems {
		p.leftOut++
		return
	}
	p.lines = append(p.lines, "- error: "+codeSpan(problem.Text)+"\n")
}

func (p *problems) write(b *bytes.Buffer) {
	if len(p.lines) == 0 {
		return
	}
	b.WriteString("\n" + strings.Join(p.lines, ""))
	if p.leftOut > 0 {
		fmt.Fprintf(b, "- and %d more errors\n", p.leftOut)
	}
}

// spanBytes bounds a text on a line.
const spanBytes = 500

// codeSpan shows a line as it is, cut where it is long, between more backticks than
// it holds.
func codeSpan(s string) string {
	s = engine.Shorten(s, spanBytes)
	fence := "`"
	for strings.Contains(s, fence) {
		fence += "`"
	}
	if strings.HasPrefix(s, "`") || strings.HasSuffix(s, "`") {
		s = " " + s + " "
	}
	return fence + s + fence
}
