package plugin

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/printers"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/render"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/render/grouping"
)

// OutputFlags choose what is printed, and how.
type OutputFlags struct {
	Format       string
	Query        string
	ShowSecrets  bool
	Color        ColorMode
	GroupBy      GroupBy
	Expand       bool
	ContextLines int
}

// NewOutputFlags returns the defaults, with the format of the command.
func NewOutputFlags(format string) OutputFlags {
	return OutputFlags{Format: format, Color: ColorAuto, GroupBy: GroupBy(grouping.Patch), ContextLines: render.DefaultContextLines}
}

// AddFlags registers the flags; formats lists those that the command knows.
func (f *OutputFlags) AddFlags(c *cobra.Command, formats string) {
	flags := c.Flags()
	flags.StringVarP(&f.Format, "output", "o", f.Format, "Output format: one of "+formats+".")
	flags.StringVar(&f.Query, "query", "", "JMESPath expression to apply to the report, with -o json or -o yaml.")
	flags.BoolVar(&f.ShowSecrets, "show-secrets", false, "Print the values of Secrets, which are masked otherwise.")
	flags.Var(&f.Color, "color", "Use colors: always, never, or auto: on a terminal, unless NO_COLOR is set.")
	flags.Var(&f.GroupBy, "group-by", "Show objects of a kind that change alike as one (patch), also under each namespace or policy, or each object by itself (object), in the formats for people.")
	flags.BoolVar(&f.Expand, "expand", false, "List all objects that are shown as one.")
	flags.IntVarP(&f.ContextLines, "context-lines", "C", f.ContextLines, "Lines to show around each line that differs.")
}

// checkView refuses flags that the chosen format would ignore.
func (f *OutputFlags) checkView(c *cobra.Command) error {
	switch f.Format {
	case render.Diff, render.Summary, render.Markdown:
		return nil
	}
	for _, name := range []string{"group-by", "expand", "context-lines"} {
		if c.Flags().Changed(name) {
			return fmt.Errorf("--%s says how to show differences: use it with -o %s, %s or %s", name, render.Diff, render.Summary, render.Markdown)
		}
	}
	return nil
}

// options are those of a printer that the flags decide.
func (f *OutputFlags) options(out io.Writer) render.Options {
	o := render.Options{
		Out: out, Color: f.Color.on(out), ShowSecrets: f.ShowSecrets, Query: f.Query,
		GroupBy: grouping.By(f.GroupBy), Expand: f.Expand, ContextLines: f.ContextLines,
	}
	if f.ContextLines == 0 {
		o.ContextLines = -1
	}
	return o
}

// ColorMode says when the formats for people use colors.
type ColorMode string

// The modes.
const (
	ColorAuto   ColorMode = "auto"
	ColorAlways ColorMode = "always"
	ColorNever  ColorMode = "never"
)

// String implements pflag.Value.
func (m *ColorMode) String() string { return string(*m) }

// Type implements pflag.Value.
func (m *ColorMode) Type() string { return "auto|always|never" }

// Set implements pflag.Value.
func (m *ColorMode) Set(text string) error {
	switch mode := ColorMode(text); mode {
	case ColorAuto, ColorAlways, ColorNever:
		*m = mode
		return nil
	}
	return fmt.Errorf("use %s", m.Type())
}

func (m *ColorMode) on(out io.Writer) bool {
	return *m == ColorAlways || *m == ColorAuto && printers.AllowsColorOutput(out)
}

// GroupBy is grouping.By as a flag.
type GroupBy grouping.By

// String implements pflag.Value.
func (g *GroupBy) String() string { return string(*g) }

// Type implements pflag.Value.
func (g *GroupBy) Type() string { return grouping.All }

// Set implements pflag.Value.
func (g *GroupBy) Set(text string) error {
	by, err := grouping.ParseBy(text)
	if err == nil {
		*g = GroupBy(by)
	}
	return err
}
