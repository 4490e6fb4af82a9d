package render

import (
	"fmt"
	"io"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/render/grouping"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/secret"
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

	JSONPath      = "jsonpath"       // "jsonpath=TEMPLATE", over the report
	GoTemplate    = "go-template"    // "go-template=TEMPLATE", over the report
	CustomColumns = "custom-columns" // "custom-columns=HEADER:PATH,...", over each change of the report
)

var formats = []string{ //nolint:gochecknoglobals // an immutable table
	Diff, Summary, Table, Wide, Markdown, Name, JSON, YAML, Manifests, JSONPatch,
	JSONPath + "=...", GoTemplate + "=...", CustomColumns + "=...",
}

// Formats lists the formats of New, for help and errors.
func Formats() string { return strings.Join(formats, ", ") }

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

// Options say how to print. Only Out is needed.
type Options struct {
	Out   io.Writer
	Color bool // of the human formats
	// ShowSecrets prints Secret values as they are. Otherwise they are masked by
	// Masker, which should have seen what the policies read; a nil Masker stands
	// for one that knows the printed objects alone.
	ShowSecrets bool
	Masker      *secret.Masker
	// Explain tells of every object and rule what came of it, and why.
	Explain bool
	// GroupBy says which objects the formats for people show as one, and Expand
	// that the names of all of them are listed.
	GroupBy grouping.By
	Expand  bool
	// ContextLines are shown around each line that differs; 0 stands for
	// DefaultContextLines, a negative number for none.
	ContextLines int
	// Query is a JMESPath expression over the report; with JSON and YAML only. The
	// report is then held in memory.
	Query string
	// Context says in the report what was evaluated.
	Context Context
	// Comparer, where it is set, shows the differences instead of the diff format.
	Comparer Comparer
	// Next is the command that makes the changes, and Why the one that says more
	// where nothing would change. The human formats end with one of them.
	Next, Why string
	// DryRun is "client" or "server" where results are those of a dry run.
	DryRun string
}

// Context is what the report says about the run as a whole.
type Context struct {
	Context   string `json:"context,omitempty"` // of the kubeconfig
	Server    string `json:"server,omitempty"`
	User      string `json:"user,omitempty"`
	Namespace string `json:"namespace,omitempty"`
	Operation string `json:"operation,omitempty"`
	Version   string `json:"version,omitempty"` // of this program
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
	name, argument, templated := strings.Cut(format, "=")
	if o.Query != "" && format != JSON && format != YAML {
		return nil, fmt.Errorf("a query works on the report: use it with -o %s or -o %s", JSON, YAML)
	}
	o.Masker = o.masker()
	if templated {
		return newTemplated(name, argument, o)
	}
	switch format {
	case Diff:
		if o.Comparer != nil {
			return &comparedPrinter{human: newHuman(o)}, nil
		}
		return newDiff(o), nil
	case Summary:
		return &summaryPrinter{human: newHuman(o)}, nil
	case Table, Wide:
		return newTable(o, format == Wide), nil
	case Markdown:
		return newMarkdown(o), nil
	case Name:
		return &namePrinter{Options: o}, nil
	case Manifests:
		return &manifestPrinter{Options: o}, nil
	case JSONPatch:
		return &patchPrinter{Options: o}, nil
	case JSON, YAML:
		return newReportPrinter(format, o)
	}
	return nil, &UnknownFormatError{Format: format, Allowed: formats}
}

func (o *Options) masker() *secret.Masker {
	switch {
	case o.ShowSecrets:
		return nil
	case o.Masker == nil:
		return &secret.Masker{}
	}
	return o.Masker
}

// masked returns both states of an object as they may be shown, without the
// server's bookkeeping.
func (o *Options) masked(c *engine.Change) (before, after *unstructured.Unstructured) {
	o.learn(c)
	hide := hidden(observed(), c.Fields)
	return o.Masker.Pair(trim(c.Before, hide), trim(c.After, hide))
}

// learn makes sure that an object's own values are known, wherever else in the
// change they are.
func (o *Options) learn(c *engine.Change) {
	o.Masker.Learn(c.Before)
	o.Masker.Learn(c.After)
}
