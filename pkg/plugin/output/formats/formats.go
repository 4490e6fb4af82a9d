// Package formats opens the printers of a run: one for -o, and those of --report.
package formats

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/output"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/output/human"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/output/structured"
)

// The formats that other packages use.
const (
	Diff      = "diff"       // a unified diff of each object, for people
	Summary   = "summary"    // a line for each object, for people
	Name      = "name"       // deployment.apps/web, for xargs
	JSON      = "json"       // one report object
	YAML      = "yaml"       // the same
	Manifests = "manifests"  // the changed objects, whole
	JSONPatch = "json-patch" // an RFC 6902 patch for each object
	Table     = "table"      // a row for each object, for people
	Wide      = "wide"       // the same with fields, values and reasons
	Markdown  = "markdown"   // the diff format, for a comment or a ticket

	JSONPath       = "jsonpath" // over the report
	JSONPathAsJSON = "jsonpath-as-json"
	GoTemplate     = "go-template"    // over the report
	CustomColumns  = "custom-columns" // over each change of the report
)

// outputFormat is a format of -o.
type outputFormat struct {
	name, also string // also is another name that kubectl has for it
	open       func(o output.Options, template string) (output.Format, error)
	// template is the usage of a template that the format takes, as in `kubectl get`; fromFile if it takes a
	// file.
	template         string
	people           bool // it is for people, not for programs
	objects          bool // it lists objects without the results of rules
	writes, compares bool // it is also for a run that writes, for a comparison
	tests            bool // it is also for tests
}

const fromFile = "FILE"

var all = []outputFormat{ //nolint:gochecknoglobals // an immutable table
	{name: Diff, open: always(human.NewDiff), people: true, writes: true, compares: true, tests: true},
	{name: Summary, open: always(human.NewSummary), people: true, writes: true, compares: true},
	{name: Table, open: always(human.NewTable), people: true, objects: true, compares: true, tests: true},
	{name: Wide, open: always(human.NewWideTable), people: true},
	{name: Markdown, open: always(human.NewMarkdown), people: true, compares: true},
	{name: Name, open: always(structured.NewNames), objects: true, writes: true, compares: true},
	{name: JSON, open: reportAs(false), writes: true, compares: true, tests: true},
	{name: YAML, open: reportAs(true), writes: true, compares: true, tests: true},
	{name: Manifests, open: always(structured.NewManifests), objects: true},
	{name: JSONPatch, open: always(structured.NewPatches), objects: true},
	{name: JSONPath, open: jsonPath(false), template: "TEMPLATE"},
	{name: JSONPathAsJSON, open: jsonPath(true), template: "TEMPLATE"},
	{name: "jsonpath-file", open: jsonPath(false), template: fromFile},
	{name: GoTemplate, also: "template", open: structured.NewGoTemplate, template: "TEMPLATE"},
	{name: "go-template-file", also: "templatefile", open: structured.NewGoTemplate, template: fromFile},
	{name: CustomColumns, open: structured.NewCustomColumns, template: "HEADER:PATH,..."},
	{name: "custom-columns-file", open: structured.NewColumnsTemplate, template: fromFile},
}

// always opens a format that takes no template.
func always[F output.Format](begin func(output.Options) F) func(output.Options,
	string) (output.Format, error) {
	return func(o output.Options, _ string) (output.Format, error) { return begin(o), nil }
}

func jsonPath(asJSON bool) func(output.Options, string) (output.Format, error) {
	return func(o output.Options, text string) (output.Format, error) {
		return structured.NewJSONPath(o, text, asJSON)
	}
}

func reportAs(asYAML bool) func(output.Options, string) (output.Format, error) {
	return func(o output.Options, _ string) (output.Format, error) { return structured.NewReport(o, asYAML) }
}

// fits reports whether a run with these options has the format.
func (f *outputFormat) fits(o output.Options) bool {
	return (f.writes || !o.Writes) && (f.compares || !o.Compares) && (f.tests || !o.Tests)
}

// names lists formats as a user types them.
func names(fits func(*outputFormat) bool) []string {
	var out []string
	for i := range all {
		switch f := &all[i]; {
		case !fits(f):
		case f.template != "":
			out = append(out, f.name+"=")
		default:
			out = append(out, f.name)
		}
	}
	return out
}

// find returns the format that a user typed, or nil.
func find(typed string) *outputFormat {
	name, _, template := strings.Cut(typed, "=")
	i := slices.IndexFunc(all, func(f outputFormat) bool {
		return (f.name == name || f.also != "" && f.also == name) && (f.template != "" || !template)
	})
	if i < 0 {
		return nil
	}
	return &all[i]
}

// ForPeople reports whether a format is for people, not for programs.
func ForPeople(format string) bool {
	f := find(format)
	return f != nil && f.people
}

// Names lists the formats of a run with these options, for help and errors.
func Names(o output.Options) string { return strings.Join(namesOf(o), ", ") }

func namesOf(o output.Options) []string {
	return names(func(f *outputFormat) bool { return f.fits(o) })
}

// Explains reports whether a format shows why a rule did what it did.
func Explains(format string) bool {
	f := find(format)
	return f == nil || !f.objects
}

// ExplainNames lists the formats that explain, for help and errors.
func ExplainNames() string {
	return strings.Join(names(func(f *outputFormat) bool { return !f.objects }), ", ")
}

// UnknownFormatError is the error for a format that does not exist.
type UnknownFormatError struct {
	Format  string
	Allowed []string
}

// Error lists the existing formats.
func (e *UnknownFormatError) Error() string {
	if slices.ContainsFunc(reportFormats, func(f reportFormat) bool { return f.name == e.Format }) &&
		slices.Contains(e.Allowed, Diff) {
		return fmt.Sprintf("%s is a format of reports: use --report %[1]s=FILE, or --report %[1]s=- for standard output", e.Format)
	}
	return fmt.Sprintf("unknown output format %q: use one of %s", e.Format, strings.Join(e.Allowed, ", "))
}

// NewWrites returns the printer of a run that writes: it shows first what would change, and then, with a
// printer of NewResults, what was written. The formats for people show both on one stream. Otherwise, and
// with a report on standard output, what would change goes to errOut. It fails for an unknown format or an
// unusable query.
func NewWrites(writes output.Printer, format string, o output.Options, r *Reports,
	errOut io.Writer,
) (output.Printer, error) {
	first := format
	if !ForPeople(format) {
		first = Summary
	}
	if format != first || r.Instead() {
		o.Out, o.Color, o.Query = errOut, false, ""
	}
	preview, err := New(first, o)
	if err != nil {
		return nil, err
	}
	return &phases{preview: preview, writes: writes}, nil
}

// NewResults returns the printer for what was written.
func NewResults(format string, o output.Options, r *Reports) (output.Printer, error) {
	var writes output.Printer
	var err error
	if f := find(format); f != nil && f.writes && f.people {
		err, writes = checkQuery(format, &o), output.NewPrinter(human.NewWrites(o), o.ShowSecrets)
	} else {
		o.Writes = true
		writes, err = New(format, o)
	}
	if err == nil && r.Instead() {
		writes = output.Tee() // shows nothing
	}
	return writes, err
}

// New returns the printer of a preview, a comparison or tests. It fails for an unknown format and an
// unusable template or query.
func New(format string, o output.Options) (output.Printer, error) {
	if err := checkQuery(format, &o); err != nil {
		return nil, err
	}
	f := find(format)
	var template string
	var err error
	switch {
	case f != nil && !f.fits(o), f == nil && (o.Template == "" || o.Compares || o.Tests):
		return nil, &UnknownFormatError{Format: format, Allowed: namesOf(o)}
	case o.Tests && f.people:
		return output.NewPrinter(human.NewTests(o, format), o.ShowSecrets), nil
	case o.Compares && f.people:
		return output.NewPrinter(human.NewComparison(o, format), o.ShowSecrets), nil
	case f != nil && f.template != "":
		template, err = f.templateOf(format, o)
	case o.Template != "" && !o.Compares:
		templated := func(f *outputFormat) bool { return f.template != "" }
		err = fmt.Errorf("a template works with -o %s", strings.Join(names(templated), ", "))
	}
	if err != nil {
		return nil, err
	}
	shown, err := f.open(o, template)
	if err != nil {
		return nil, err
	}
	return output.NewPrinter(shown, o.ShowSecrets), nil
}

// errTwoTemplates is the error for one template too many.
var errTwoTemplates = errors.New("-o and --template both give a template: leave one of them out")

// templateOf returns the template for a format that takes one.
func (f *outputFormat) templateOf(typed string, o output.Options) (string, error) {
	_, text, _ := strings.Cut(typed, "=")
	switch {
	case text != "" && o.Template != "":
		return "", errTwoTemplates
	case text == "":
		text = o.Template
	}
	switch {
	case text == "":
		return "", fmt.Errorf("-o %s: template format specified but no template given: type -o %s=%s", f.name, f.name, f.template)
	case f.template != fromFile:
		return text, nil
	}
	content, err := os.ReadFile(text)
	if err == nil && len(content) == 0 {
		return "", fmt.Errorf("-o %s: no template in the file", f.name)
	}
	if err != nil {
		return "", fmt.Errorf("-o %s: reading the template: %w", f.name, err)
	}
	return string(content), nil
}

// phases shows what would change with one printer, and what was written with another.
type phases struct{ preview, writes output.Printer }

// Print implements output.Printer.
func (p *phases) Print(e output.Event) error {
	switch e.(type) {
	case output.Evaluated:
		return p.preview.Print(e)
	case output.Summary:
		return errors.Join(p.preview.Print(e), p.preview.Close())
	}
	return p.writes.Print(e)
}

// Flush implements output.Flusher.
func (p *phases) Flush() error { return errors.Join(output.Flush(p.preview), output.Flush(p.writes)) }

// Close implements output.Printer.
func (p *phases) Close() error { return p.writes.Close() }

// checkQuery returns an error for a query with a format that would ignore it.
func checkQuery(format string, o *output.Options) error {
	if o.Query == "" || format == JSON || format == YAML {
		return nil
	}
	return fmt.Errorf("a query works on the report: use it with -o %s or -o %s", JSON, YAML)
}
