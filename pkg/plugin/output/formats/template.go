package formats

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/output"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/output/structured"
)

// The formats that take a template, as those of `kubectl get` do: FORMAT=TEMPLATE, or
// FORMAT=FILE.
const (
	JSONPath          = "jsonpath" // over the report
	JSONPathAsJSON    = "jsonpath-as-json"
	JSONPathFile      = "jsonpath-file"
	GoTemplate        = "go-template" // over the report
	GoTemplateFile    = "go-template-file"
	CustomColumns     = "custom-columns" // "HEADER:PATH,...", over each change of the report
	CustomColumnsFile = "custom-columns-file"
)

// templated is one of them.
type templated struct {
	format string
	also   string // another name that kubectl has for it
	file   bool
	begin  func(output.Options, string) (output.Format, error)
}

var allTemplated = []templated{ //nolint:gochecknoglobals // an immutable table
	{format: JSONPath, begin: jsonPath},
	{format: JSONPathAsJSON, begin: jsonPathAsJSON},
	{format: JSONPathFile, file: true, begin: jsonPath},
	{format: GoTemplate, also: "template", begin: structured.NewGoTemplate},
	{format: GoTemplateFile, also: "templatefile", file: true, begin: structured.NewGoTemplate},
	{format: CustomColumns, begin: structured.NewCustomColumns},
	{format: CustomColumnsFile, file: true, begin: structured.NewColumnsTemplate},
}

func jsonPath(o output.Options, text string) (output.Format, error) {
	return structured.NewJSONPath(o, text, false)
}

func jsonPathAsJSON(o output.Options, text string) (output.Format, error) {
	return structured.NewJSONPath(o, text, true)
}

// templatedFormats are their names, as a user begins to type them.
func templatedFormats() []string {
	out := make([]string, len(allTemplated))
	for i := range allTemplated {
		out[i] = allTemplated[i].format + "="
	}
	return out
}

// templateOf returns the format that a user means, and nil if it takes no template.
func templateOf(format string) *templated {
	name, _, _ := strings.Cut(format, "=")
	for i := range allTemplated {
		if t := &allTemplated[i]; t.format == name || t.also != "" && t.also == name {
			return t
		}
	}
	return nil
}

// errTwoTemplates is the error for one template too many.
var errTwoTemplates = errors.New("-o and --template both give a template: leave one of them out")

// open returns a format with its template. It fails without one, and
// for one that cannot be used.
func (t *templated) open(format string, o output.Options) (output.Format, error) {
	_, text, _ := strings.Cut(format, "=")
	switch {
	case text != "" && o.Template != "":
		return nil, errTwoTemplates
	case text == "":
		text = o.Template
	}
	if text == "" {
		return nil, fmt.Errorf("-o %s: template format specified but no template given: type -o %s=%s", t.format, t.format, t.wants())
	}
	if t.file {
		content, err := os.ReadFile(text)
		if err != nil {
			return nil, fmt.Errorf("-o %s: reading the template: %w", t.format, err)
		}
		if text = string(content); text == "" {
			return nil, fmt.Errorf("-o %s: no template in the file", t.format)
		}
	}
	return t.begin(o, text)
}

// wants is what stands behind the format.
func (t *templated) wants() string {
	switch {
	case t.file:
		return "FILE"
	case t.format == CustomColumns:
		return "HEADER:PATH,..."
	}
	return "TEMPLATE"
}
