package flags

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/pflag"
	"k8s.io/cli-runtime/pkg/printers"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/output"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/output/formats"
)

// Output has the flags for the format of the output, and its options.
type Output struct {
	Format string
	Color  string // auto, always or never
	// The flags set fields of these; see PrinterOptions.
	output.Options
}

// NewOutput returns the defaults, with the format of the command.
func NewOutput(format string) Output {
	return Output{
		Format: format, Color: "auto",
		Options: output.Options{GroupBy: output.ByPatch, ContextLines: output.DefaultContextLines},
	}
}

// AddFlags registers the flags; formats lists the formats of the command.
func (f *Output) AddFlags(flags *pflag.FlagSet, formats string) {
	flags.StringVarP(&f.Format, "output", "o", f.Format, "Output format: one of "+formats+".")
	flags.StringVar(&f.Query, "query", "", "JMESPath expression to apply to the report, with -o json or -o yaml.")
	f.AddValueFlags(flags)
	flags.Var(&f.GroupBy, "group-by", "In the formats for people, show objects of a kind with the same change as one (patch), also by namespace, policy or cluster, or each object by itself (object).")
	flags.BoolVar(&f.ListAll, "list-all", false, "List all objects of a group.")
	flags.IntVarP(&f.ContextLines, "context-lines", "C", f.ContextLines, "Lines to show around each line that differs.")
}

// AddValueFlags registers the flags for how values are shown.
func (f *Output) AddValueFlags(flags *pflag.FlagSet) {
	flags.BoolVar(&f.ShowSecrets, "show-secrets", false, "Print the values of Secrets, which are masked by default.")
	flags.Var(choice{&f.Color, []string{"auto", "always", "never"}, "auto|always|never"}, "color", "Use colors: always, never, or auto: on a terminal, unless NO_COLOR is set.")
}

// AddTemplateFlag registers the flag of the commands whose formats take templates.
func (f *Output) AddTemplateFlag(flags *pflag.FlagSet) {
	flags.StringVar(&f.Template, "template", "", "Template, or path of a file that holds it, for the formats of -o that take one; alone it is a go-template.")
}

// CheckView returns an error for flags that the chosen format would ignore. A template
// without -o chooses its format.
func (f *Output) CheckView(flags *pflag.FlagSet) error {
	if f.Template != "" && !flags.Changed("output") {
		f.Format = formats.GoTemplate
	}
	switch f.Format {
	case formats.Diff, formats.Summary, formats.Markdown:
		return nil
	}
	for _, name := range []string{"group-by", "list-all", "context-lines"} {
		if flags.Changed(name) {
			return fmt.Errorf("--%s says how to show differences: use it with -o %s, %s or %s", name, formats.Diff, formats.Summary, formats.Markdown)
		}
	}
	return nil
}

// CheckReasons returns an error for formats that cannot show the reasons of rules.
func (f *Output) CheckReasons() error {
	if formats.Explains(f.Format) {
		return nil
	}
	return fmt.Errorf("-o %s cannot show reasons: use one of %s", f.Format, formats.ExplainNames())
}

// PrinterOptions returns the options of a printer as the flags set them.
func (f *Output) PrinterOptions(out io.Writer) output.Options {
	o := f.Options
	o.Out, o.Color = out, f.Color == "always" || f.Color == "auto" && printers.AllowsColorOutput(out)
	if f.ContextLines == 0 {
		o.ContextLines = -1
	}
	return o
}

// choice is a flag with a few values.
type choice struct {
	to    *string
	names []string
	use   string // says them in the error of another value
}

// String implements pflag.Value.
func (c choice) String() string { return *c.to }

// Type implements pflag.Value.
func (c choice) Type() string { return strings.Join(c.names, "|") }

// Set implements pflag.Value.
func (c choice) Set(text string) error {
	if !slices.Contains(c.names, text) {
		return errors.New("use " + c.use)
	}
	*c.to = text
	return nil
}

// The values of --validate; empty is the default of the run.
const (
	ValidateServer = "server"
	ValidateNone   = "none"
)

// AddValidateFlag registers the flag that chooses what checks the changes of a preview; without a value,
// ValidateServer.
func AddValidateFlag(flags *pflag.FlagSet, to *string, usage string) {
	flags.Var(choice{to, []string{ValidateServer, "client", ValidateNone}, "server, client or none"},
		"validate", usage)
	flags.Lookup("validate").NoOptDefVal = ValidateServer
}

// Report has the flags for reports besides the output.
type Report struct {
	Reports []string // FORMAT=FILE
	// Written is the report that a preview keeps in the cluster, FORMAT or FORMAT=NAME; empty without a report.
	Written string
}

// AddClusterFlag registers the flag of a preview.
func (f *Report) AddClusterFlag(flags *pflag.FlagSet) {
	flags.StringVar(&f.Written, "write-reports", "", "Also keep a report on each object in the cluster, as FORMAT or FORMAT=NAME: policyreport or openreports, in a set of this NAME, kubectl-mutate by default. The preview then writes these reports, and still nothing else.")
}

// AddFlags registers the flag; names lists the formats of the command.
func (f *Report) AddFlags(flags *pflag.FlagSet, names string) {
	help := "Also write a report, as FORMAT=FILE: one of " + names + ". May be given more than once. FILE - is standard output, instead of what -o prints"
	if strings.Contains(names, "github") {
		help += "; github without a FILE goes to standard error"
	}
	flags.StringArrayVar(&f.Reports, "report", nil, help+".")
}
