package human

import (
	"fmt"
	"strings"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
)

// maxProblems bounds how many problems a page of Markdown lists.
const maxProblems = 20

// Problems are what went wrong beside the objects, for a page of Markdown: it is read where
// standard error is not. The zero value has none.
type Problems struct {
	lines []string
	more  int // that are not listed
}

// Add adds a problem.
func (p *Problems) Add(text string) {
	if len(p.lines) == maxProblems {
		p.more++
		return
	}
	p.lines = append(p.lines, "- error: "+ShortSpan(text)+"\n")
}

// String returns a list below an empty line; it is empty if there are none.
func (p *Problems) String() string {
	switch {
	case len(p.lines) == 0:
		return ""
	case p.more > 0:
		return "\n" + strings.Join(p.lines, "") + fmt.Sprintf("- and %d more errors\n", p.more)
	}
	return "\n" + strings.Join(p.lines, "")
}

// spanBytes bounds a code span on a line.
const spanBytes = 500

// ShortSpan is a code span of a string that is cut where it is long.
func ShortSpan(text string) string { return codeSpan(engine.Shorten(text, spanBytes)) }
