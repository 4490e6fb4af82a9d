package github

import (
	"fmt"
	"strings"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/output/report"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/redact"
)

// annotation is one that is shown at a line of a file, or at none.
type annotation struct {
	level, title, text string
	place              report.Place
}

// command is the annotation as the runner reads it from a line of output.
func (a *annotation) command() string {
	var b strings.Builder
	b.WriteString("::" + a.level + " ")
	if a.place.Path != "" {
		fmt.Fprintf(&b, "file=%s,line=%d,", property(redact.EscapeLine(a.place.Path)), a.place.Line)
	}
	return b.String() + "title=" + property(a.title) + "::" + data(a.text) + "\n"
}

// What the runner decodes again (ActionCommand.cs of actions/runner).
var (
	dataEscaper     = strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A")                         //nolint:gochecknoglobals // an immutable table
	propertyEscaper = strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A", ":", "%3A", ",", "%2C") //nolint:gochecknoglobals // an immutable table
)

func data(s string) string { return dataEscaper.Replace(s) }

func property(s string) string { return propertyEscaper.Replace(s) }
