// Package formats opens the printers of a run: that of a format of -o, and the reports
// that are named with --report.
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

// The formats of NewPreview.
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
)

// The runs that formats are for.
var (
	previewFormats = append([]string{ //nolint:gochecknoglobals // an immutable table
		Diff, Summary, Table, Wide, Markdown, Name, JSON, YAML, Manifests, JSONPatch,
	}, templatedFormats()...)
	writeFormats   = []string{Diff, Summary, Name, JSON, YAML}                  //nolint:gochecknoglobals // an immutable table
	compareFormats = []string{Diff, Summary, Table, Markdown, Name, JSON, YAML} //nolint:gochecknoglobals // an immutable table
	// reasonless are the formats that list objects, and not what the rules did to them.
	reasonless = []string{Table, Name, Manifests, JSONPatch} //nolint:gochecknoglobals // an immutable table
)

// ForPeople reports whether a format is for people, not for programs.
func ForPeople(format string) bool {
	return slices.Contains([]string{Diff, Summary, Table, Wide, Markdown}, format)
}

// PreviewNames lists the formats of NewPreview, for help and errors.
func PreviewNames() string { return strings.Join(previewFormats, ", ") }

// WriteNames lists the formats of NewWrites, for help and errors.
func WriteNames() string { return strings.Join(writeFormats, ", ") }

// ComparisonNames lists the formats of NewComparison, for help and errors.
func ComparisonNames() string { return strings.Join(compareFormats, ", ") }

// Explains reports whether a format has a place for why a rule did what it did.
func Explains(format string) bool { return !slices.Contains(reasonless, format) }

// ExplainNames lists the formats that have, for help and errors.
func ExplainNames() string {
	return strings.Join(slices.DeleteFunc(slices.Clone(previewFormats), func(f string) bool { return !Explains(f) }), ", ")
}

// UnknownFormatError is the error for a format that does not exist.
type UnknownFormatError struct {
	Format  string
	Allowed []string
}

// Error lists the formats that exist.
func (e *UnknownFormatError) Error() string {
	return fmt.Sprintf("unknown output format %q: use one of %s", e.Format, strings.Join(e.Allowed, ", "))
}

// NewPreview returns the printer of what a run finds. It fails for an unknown format,
// and for a template or a query that cannot be used.
func NewPreview(format string, o output.Options) (output.Printer, error) {
	return open(format, o, previewFormats)
}

// NewComparison returns the printer of a comparison. It fails for an unknown format, and for a
// query that cannot be used.
func NewComparison(format string, o output.Options) (output.Printer, error) {
	o.Compares = true
	return open(format, o, compareFormats)
}

// NewWrites returns the printer of a run that writes: it shows first what would change,
// and then what was written. The formats for people show both on one stream; with the
// others, standard output is for what was written, and what would change goes to
// errOut. So it does with a report on standard output, which takes the place of the
// rest. It fails for an unknown format, and for a query that cannot be used.
func NewWrites(format string, o output.Options, r *Reports, errOut io.Writer) (output.Printer, error) {
	writes, err := NewResults(format, o, r)
	if err != nil {
		return nil, err
	}
	return NewWritesInto(writes, format, o, r, errOut)
}

// NewWritesInto is NewWrites with the printer of what was written, one of NewResults.
func NewWritesInto(writes output.Printer, format string, o output.Options, r *Reports, errOut io.Writer) (output.Printer, error) {
	first := format
	if !ForPeople(format) {
		first = Summary
	}
	if format != first || r.Instead() {
		o.Out, o.Color, o.Query = errOut, false, ""
	}
	preview, err := NewPreview(first, o)
	if err != nil {
		return nil, err
	}
	return &phases{preview: preview, writes: writes}, nil
}

// NewResults returns the printer of what was written alone.
func NewResults(format string, o output.Options, r *Reports) (output.Printer, error) {
	if !slices.Contains(writeFormats, format) {
		return nil, &UnknownFormatError{Format: format, Allowed: writeFormats}
	}
	var writes output.Printer
	var err error
	if format == Diff || format == Summary {
		err, writes = checkQuery(format, &o), showing{human.NewWrites(o), o.ShowSecrets}
	} else {
		o.Writes = true
		writes, err = open(format, o, writeFormats)
	}
	if err == nil && r.Instead() {
		writes = output.Tee() // shows nothing
	}
	return writes, err
}

// open returns the printer of one of the formats.
func open(format string, o output.Options, allowed []string) (output.Printer, error) {
	if err := checkQuery(format, &o); err != nil {
		return nil, err
	}
	f, err := newFormat(format, o, allowed)
	if err != nil {
		return nil, err
	}
	return showing{f, o.ShowSecrets}, nil
}

func newFormat(format string, o output.Options, allowed []string) (output.Format, error) {
	if t := templateOf(format); t != nil && !o.Compares {
		return t.open(format, o)
	}
	if o.Template != "" && !o.Compares {
		return nil, fmt.Errorf("a template works with -o %s", strings.Join(templatedFormats(), ", "))
	}
	switch {
	case !slices.Contains(allowed, format):
		return nil, &UnknownFormatError{Format: format, Allowed: allowed}
	case o.Compares && ForPeople(format):
		return human.NewComparison(o, format), nil
	}
	switch format {
	case Diff:
		return human.NewDiff(o), nil
	case Summary:
		return human.NewSummary(o), nil
	case Table, Wide:
		return human.NewTable(o, format == Wide), nil
	case Markdown:
		return human.NewMarkdown(o), nil
	case Name:
		return structured.NewNames(o), nil
	case Manifests:
		return structured.NewManifests(o), nil
	case JSONPatch:
		return structured.NewPatches(o), nil
	}
	return structured.NewReport(o, format == YAML)
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

// checkQuery refuses a query of a format that would ignore it.
func checkQuery(format string, o *output.Options) error {
	if o.Query == "" || format == JSON || format == YAML {
		return nil
	}
	return fmt.Errorf("a query works on the report: use it with -o %s or -o %s", JSON, YAML)
}

// showing is a printer that shows events with a format, as they may be shown.
type showing struct {
	output.Format
	secrets bool
}

// Print implements output.Printer.
func (s showing) Print(e output.Event) error { return s.Format.Print(output.Show(e, s.secrets)) }

// Flush implements output.Flusher.
func (s showing) Flush() error { return output.Flush(s.Format) }

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
