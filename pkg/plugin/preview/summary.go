package preview

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/spf13/cobra"
	"k8s.io/kubectl/pkg/util/templates"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/factory"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/flags"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/output/formats"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/output/report"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/process"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/redact"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/wording"
)

// SummaryFlags has the flags of summary.
type SummaryFlags struct {
	flags.Evaluate
	Reports string // FORMAT or FORMAT=NAME
	Output  string
}

// NewSummaryCommand is `summary`: the results in the reports in the cluster.
func NewSummaryCommand(evaluate flags.Evaluate, name string) *cobra.Command {
	f := SummaryFlags{Evaluate: evaluate, Reports: "policyreport", Output: formats.Table}
	f.Objects.AllNamespaces = true
	c := &cobra.Command{
		Use:   "summary",
		Short: "Print what the reports of previews in the cluster say, as one table",
		Args:  cobra.NoArgs,
		Long: templates.LongDesc(`
			Print one table of the reports that preview --write-reports keeps in the cluster, by policy and rule:
			on how many objects a rule would change something (FAIL), failed (ERROR), was skipped, or finds
			nothing to change (PASS).
			Reports are for each object, so that those of several shards need no merging.

			The report of -o json or -o yaml has objects and rules[]: policy, rule, fail, error, skip and pass.
			docs/summary.schema.json has all of it.

			Exit codes: 0 no rule would change an object, 1 some would, 2 the reports cannot be read, or there are
			none, 3 some rules failed.`),
		Example: templates.Examples(fmt.Sprintf(`
			# What did the Job find?
			%[1]s summary

			# For a dashboard: on how many objects each rule would change something
			%[1]s summary -o json

			# Of a few namespaces
			%[1]s summary --namespaces shop,payments

			# In one namespace, of the reports of another Job
			%[1]s summary --write-reports openreports=nightly --all-namespaces=false -n shop`, name)),
		RunE: func(c *cobra.Command, _ []string) error {
			if len(f.Objects.Namespaces) > 0 && c.Flags().Changed("all-namespaces") {
				return errors.New("only one of -A/--all-namespaces and --namespaces can be used")
			}
			return process.Exit(f.Run(c.Context()))
		},
	}
	c.Flags().StringVar(&f.Reports, "write-reports", f.Reports, "The reports, as for preview: FORMAT or FORMAT=NAME.")
	c.Flags().StringVarP(&f.Output, "output", "o", f.Output, "Output format: one of table, json, yaml.")
	c.Flags().BoolVarP(&f.Objects.AllNamespaces, "all-namespaces", "A", f.Objects.AllNamespaces, "Read the reports of all namespaces; with =false, those of the namespace of -n.")
	c.Flags().StringSliceVar(&f.Objects.Namespaces, "namespaces", nil, "Read the reports of these namespaces, such as --namespaces a,b,c. May be given more than once.")
	f.Objects.AddExcludeFlags(c.Flags())
	f.Client.AddFlags(c.Flags())
	refuseContexts(c)
	return c
}

// Run reads the reports, prints the table, and returns the exit code.
func (f *SummaryFlags) Run(ctx context.Context) (int, error) {
	if allowed := []string{formats.Table, formats.JSON, formats.YAML}; !slices.Contains(allowed, f.Output) {
		return process.ExitNothing, &formats.UnknownFormatError{Format: f.Output, Allowed: allowed}
	}
	reports, err := factory.ParseClusterReports(f.Reports)
	if err != nil {
		return process.ExitNothing, err
	}
	scope, err := f.scope()
	if err != nil {
		return process.ExitNothing, err
	}
	client, err := reports.Open(f.Config, f.Client)
	if err != nil {
		return process.ExitNothing, err
	}
	if scope.Exclude, err = factory.Excluded(client.Mapper(), f.Objects.Exclude,
		f.Objects.ExcludeNamespaces); err != nil {
		return process.ExitNothing, err
	}
	s, err := report.ReadSummary(ctx, client, reports.Options(scope))
	switch {
	case err != nil:
		return process.ExitNothing, err
	case len(s.Rules) == 0:
		return process.ExitNothing, fmt.Errorf("there are no reports of %q: preview --write-reports writes them", f.Reports)
	}
	code := process.ExitOK
	for i := range s.Rules {
		switch {
		case s.Rules[i].Error > 0:
			code = process.ExitIncomplete
		case s.Rules[i].Fail > 0 && code == process.ExitOK:
			code = process.ExitChanges
		}
	}
	if f.Output != formats.Table {
		return code, s.Print(f.Streams.Out, f.Output == formats.YAML)
	}
	return code, printSummary(redact.NewWriter(f.Streams.Out), s)
}

// scope returns the namespaces of the reports.
func (f *SummaryFlags) scope() (engine.Scope, error) {
	f.Objects.AllNamespaces = f.Objects.AllNamespaces && f.Objects.Namespaces == nil
	scope := engine.Scope{
		ClusterScoped: f.Objects.AllNamespaces, Namespaces: (&factory.Factory{Evaluate: &f.Evaluate}).Namespaces(),
	}
	return scope, f.Objects.ValidateNames(f.Config)
}

func printSummary(out io.Writer, s report.StoreSummary) error {
	rows := [][]string{{"POLICY/RULE", "FAIL", "ERROR", "SKIP", "PASS"}}
	for _, c := range s.Rules {
		rule := engine.RuleRef{Policy: c.Policy, Rule: c.Rule}
		rows = append(rows,
			[]string{rule.String(), fmt.Sprint(c.Fail), fmt.Sprint(c.Error), fmt.Sprint(c.Skip), fmt.Sprint(c.Pass)})
	}
	_, err := fmt.Fprintf(out, "%s\n%s with a report.\n", wording.Table(rows),
		wording.Plural(s.Objects, "object"))
	return err
}
