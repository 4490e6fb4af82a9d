package structured

import (
	"bytes"
	"errors"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/json"
	"k8s.io/cli-runtime/pkg/printers"
	"k8s.io/client-go/util/jsonpath"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/output"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/redact"
)

// NewJSONPath returns a printer of what a JSONPath template finds in the report: as
// text, or as a JSON list. It fails for a template that is none.
func NewJSONPath(o output.Options, template string, asJSON bool) (*Report, error) {
	path := jsonpath.New("out").AllowMissingKeys(true)
	if err := path.Parse(template); err != nil {
		return nil, fmt.Errorf("-o jsonpath: %w", err)
	}
	path.EnableJSONOutput(asJSON)
	return newTemplated(o, "jsonpath", func(b *bytes.Buffer, report map[string]any) error {
		return brief(path.Execute(b, report))
	}), nil
}

// NewGoTemplate returns a printer of what a Go template makes of the report. It fails
// for a template that is none.
func NewGoTemplate(o output.Options, template string) (*Report, error) {
	p, err := printers.NewGoTemplatePrinter([]byte(template))
	if err != nil {
		return nil, fmt.Errorf("-o go-template: %w", err)
	}
	repeated := fmt.Sprintf("error executing template %q: ", template)
	return newTemplated(o, "go-template", func(b *bytes.Buffer, report map[string]any) error {
		err := p.PrintObj(&unstructured.Unstructured{Object: report}, b)
		if err != nil {
			err = errors.New(strings.TrimPrefix(err.Error(), repeated))
		}
		return brief(err)
	}), nil
}

func newTemplated(o output.Options, format string, execute func(*bytes.Buffer, map[string]any) error) *Report {
	return &Report{encoder{o}, newHeld(o, previewHead(o), func(report []byte) (string, error) {
		var whole map[string]any
		if err := json.Unmarshal(report, &whole); err != nil {
			return "", fmt.Errorf("reading the report: %w", err)
		}
		var b bytes.Buffer
		if err := execute(&b, whole); err != nil {
			return "", fmt.Errorf("-o %s: %w", format, err)
		}
		return redact.Escape(b.String(), "\n\t"), nil
	})}
}
