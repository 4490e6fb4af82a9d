package plugin

import (
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/evaluation"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/apply"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/factory"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/flags"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/plan"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/preview"
)

// checkSave checks --save. As in apply-existing, rules for new objects then run only if
// --operation is set.
func (f *PreviewFlags) checkSave(c *cobra.Command, request *engine.Request) error {
	switch {
	case f.Save == "":
		return nil
	case f.Objects.Offline():
		return errors.New("--save makes a plan for a cluster: it cannot be used with -f/--filename or -k/--kustomize")
	case !c.Flags().Changed("operation"):
		request.Operation = engine.OperationUpdate
	}
	if f.Contexts.Given() {
		return nil // a directory, which toFleet makes
	}
	if err := plan.CheckFile(f.Save); err != nil {
		return fmt.Errorf("--save: %w", err)
	}
	return nil
}

// validate says who checks the changes. A plan that is reviewed should be one that the server takes.
func (f *PreviewFlags) validate(w *factory.Factory, o *preview.Options) {
	switch {
	case f.Validation == flags.ValidateServer, f.Validation == "" && f.Save != "":
		write := flags.NewWrite()
		if f.write != nil {
			write = *f.write
		}
		write.DryRun = string(apply.DryRunServer)
		o.Validator = w.Executor(&write, nil)
	case f.Validation == flags.ValidateNone:
		o.Unchecked = true
	}
}

// planSaver saves a plan as a file. A nil one saves nothing.
type planSaver struct {
	plan  plan.Plan
	path  string
	quiet bool
}

// add adds an object that would change, or about which there is something else to report.
func (s *planSaver) add(c *engine.Change) {
	if s == nil {
		return
	}
	if e := plan.NewEntry(c); len(e.Fields)+len(e.Steps) > 0 {
		s.plan.Entries = append(s.plan.Entries, &e)
	}
}

// save writes the plan of a finished preview.
func (s *planSaver) save(summary evaluation.Summary, r *preview.Run, errOut io.Writer) error {
	if s == nil {
		return nil
	}
	if r.Broken() > 0 {
		return fmt.Errorf("no plan was saved: %s", r.BrokenText())
	}
	s.plan.Summary, s.plan.Incomplete = summary, r.Incomplete(summary)
	if err := plan.Save(s.path, &s.plan); err != nil {
		return err
	}
	if !s.quiet {
		fmt.Fprintf(errOut, "Plan saved in %s\n", s.path)
	}
	return nil
}
