package structured

import (
	"bytes"
	"errors"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/cli-runtime/pkg/printers"
	"k8s.io/client-go/util/jsonpath"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/output"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/redact"
)

// NewJSONPath returns a printer of what a JSONPath template finds in the report: as
// text, or as a JSON list. It fails for a template that is none.
func NewJSONPath(o output.Options, template string, asJSON bool) (output.Format, error) {
	path := jsonpath.New("out").AllowMissingKeys(true)
	if err := path.Parse(template); err != nil {
		return nil, fmt.Errorf("-o jsonpath: %w", err)
	}
	path.EnableJSONOutput(asJSON)
	escape := escapeText
	if asJSON {
		escape = redact.EscapeJSON
	}
	return newTemplated(o, "jsonpath", escape, func(b *bytes.Buffer, report map[string]any) error {
		return brief(path.Execute(b, report))
	}), nil
}

// NewGoTemplate returns a printer of what a Go template makes of the report. It fails
// for a template that is none.
func NewGoTemplate(o output.Options, template string) (output.Format, error) {
	p, err := printers.NewGoTemplatePrinter([]byte(template))
	if err != nil {
		return nil, fmt.Errorf("-o go-template: %w", err)
	}
	repeated := fmt.Sprintf("error executing template %q: ", template)
	return newTemplated(o, "go-template", escapeText, func(b *bytes.Buffer, report map[string]any) error {
		err := p.PrintObj(&unstructured.Unstructured{Object: report}, b)
		if err != nil {
			err = errors.New(strings.TrimPrefix(err.Error(), repeated))
		}
		return brief(err)
	}), nil
}

// escapeText escapes what a template has made: nothing acts on a terminal.
func escapeText(text []byte) []byte { return []byte(redact.Escape(string(text), "\n\t")) }

func newTemplated(o output.Options, format string, escape func([]byte) []byte, execute func(*bytes.Buffer, map[string]any) error) output.Format {
	r := &Report{Options: o, kind: previewKind, list: previewList}
	r.hold(func(report any) (string, error) {
		var b bytes.Buffer
		if err := execute(&b, report.(map[string]any)); err != nil {
			return "", fmt.Errorf("-o %s: %w", format, err)
		}
		return string(escape(b.Bytes())), nil
	})
	return r
}
