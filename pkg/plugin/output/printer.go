package output

import (
	"fmt"
	"slices"
	"strings"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/output/human"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/output/structured"
)

// The formats of New.
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

var formats = append([]string{ //nolint:gochecknoglobals // an immutable table
	Diff, Summary, Table, Wide, Markdown, Name, JSON, YAML, Manifests, JSONPatch,
}, templatedFormats()...)

// ForPeople tells whether a format is for people, not for programs.
func ForPeople(format string) bool {
	return slices.Contains([]string{Diff, Summary, Table, Wide, Markdown}, format)
}

// Formats lists the formats of New, for help and errors.
func Formats() string { return strings.Join(formats, ", ") }

// reasonless are the formats that list objects, and not what the rules made of them.
var reasonless = []string{Table, Name, Manifests, JSONPatch} //nolint:gochecknoglobals // an immutable table

// Explains tells whether a format has a place for why a rule did what it did.
func Explains(format string) bool { return !slices.Contains(reasonless, format) }

// ExplainFormats lists the formats that have, for help and errors.
func ExplainFormats() string {
	return strings.Join(slices.DeleteFunc(slices.Clone(formats), func(f string) bool { return !Explains(f) }), ", ")
}

// Printer shows what a run finds, object by object.
type Printer interface {
	// Print shows one object. It keeps nothing of it.
	Print(engine.Change) error
	// Close ends the output; nothing may be printed after it.
	Close(engine.Summary) error
}

// Flusher is a Printer that may hold back what it was given, to show it together.
type Flusher interface {
	// Flush prints what is held back, for a run that breaks off before Close.
	Flush() error
}

// Flush has a printer print what it may hold back.
func Flush(p Printer) error {
	if f, ok := p.(Flusher); ok {
		return f.Flush()
	}
	return nil
}

// UnknownFormatError tells that there is no such format.
type UnknownFormatError struct {
	Format  string
	Allowed []string
}

// Error lists the formats that there are.
func (e *UnknownFormatError) Error() string {
	return fmt.Sprintf("unknown output format %q: use one of %s", e.Format, strings.Join(e.Allowed, ", "))
}

// New returns the printer of a format. It fails for an unknown format, and for a
// template or a query that cannot be used.
func New(format string, o Options) (Printer, error) {
	if err := o.checkQuery(format); err != nil {
		return nil, err
	}
	o.Masker = o.masker()
	if t := templateOf(format); t != nil {
		return t.printer(format, &o)
	}
	if o.Template != "" {
		return nil, fmt.Errorf("a template works with -o %s", strings.Join(templatedFormats(), ", "))
	}
	switch format {
	case Diff:
		if o.Comparer != nil {
			return human.NewCompared(o.human(), o.Comparer), nil
		}
		return human.NewDiff(o.human()), nil
	case Summary:
		return human.NewSummary(o.human()), nil
	case Table, Wide:
		return human.NewTable(o.human(), format == Wide), nil
	case Markdown:
		return human.NewMarkdown(o.human()), nil
	case Name:
		return structured.NewNames(o.machine()), nil
	case Manifests:
		return structured.NewManifests(o.machine()), nil
	case JSONPatch:
		return structured.NewPatches(o.machine()), nil
	case JSON, YAML:
		if o.Query != "" {
			return structured.NewQuery(o.machine(), o.Query, format == YAML)
		}
		return structured.NewReport(o.machine(), format == YAML), nil
	}
	return nil, &UnknownFormatError{Format: format, Allowed: formats}
}
