package policies

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/kubectl/pkg/util/templates"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/selector"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/cluster"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/flags"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/output/formats"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/permission"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/preview"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/process"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/wording"
)

// jobFlags has the flags of job.
type jobFlags struct {
	flags.Evaluate
	Write  flags.Write
	Report flags.Report
	Apply  bool
	Spec   jobSpec
	Output string
}

// NewJobCommand is `job`: the manifests of a Job that runs the program in the cluster.
func NewJobCommand(evaluate flags.Evaluate, name string) *cobra.Command {
	f := jobFlags{
		Evaluate: evaluate, Write: flags.NewWrite(), Output: formats.YAML,
		Spec: jobSpec{Name: "kubectl-mutate", Image: process.Image(), Shards: 1},
	}
	f.Objects.AllNamespaces = true
	f.Write.JournalMaxSize.Quantity = resource.MustParse("512Mi") // half of the volume
	c := &cobra.Command{
		Use:   "job [TYPE | TYPE/NAME ...]",
		Short: "Print a Job or CronJob that previews or applies policies in the cluster",
		Long: templates.LongDesc(`
			Print the manifests of a Job, or with --schedule of a CronJob, that previews the policies inside the
			cluster, or with --apply applies them: a ServiceAccount, the smallest roles for it as the command
			rbac computes them, with their bindings, the policies in ConfigMaps, and the Job. All is in the
			namespace of -n, which has to be there. Nothing is written: pipe it into kubectl apply.

			The run covers all namespaces, those of --namespaces, or with --all-namespaces=false that of -n only.
			With --shards several Pods divide the objects by their namespaces. A run that applies keeps its journal
			and its metrics on a volume, asks no question, and changes no more objects than --max-changes says.

			Exit codes: 0 the manifests are complete, 2 there are none, 3 some policies have errors: the preview
			would be incomplete. With --apply that is 2, since the run would write nothing.`),
		Example: templates.Examples(fmt.Sprintf(`
			# Preview the policies each hour, and keep the results as PolicyReports
			%[1]s job -p policies/ --schedule '17 * * * *' --write-reports policyreport -n mutate | kubectl apply -f -

			# Apply them once, in four Pods
			%[1]s job -p policies/ --apply --max-changes 5000 --shards 4 -n mutate | kubectl apply -f -

			# Keep to a namespace: without a ClusterRole for its objects
			%[1]s job deployments -p policy.yaml --all-namespaces=false -n shop`, name)),
		RunE: func(c *cobra.Command, args []string) error {
			return process.Exit(f.run(c.Context(), c.Flags(), args))
		},
	}
	f.addFlags(c.Flags())
	return c
}

// runFlags lists the flags that job passes on to the run.
var runFlags = []string{"from-cluster", "only", "skip", "allow-unknown-kinds", "strict", "exclude", "exclude-namespaces", "skip-managed", "selector", "field-selector", "max-objects", "percent", "percent-seed", "kube-api-qps", "kube-api-burst", "write-reports"} //nolint:gochecknoglobals // an immutable table

func (f *jobFlags) addFlags(set *pflag.FlagSet) {
	f.Policies.AddFlags(set)
	f.Policies.AddStrictFlag(set)
	set.BoolVarP(&f.Objects.AllNamespaces, "all-namespaces", "A", f.Objects.AllNamespaces, "Run on the objects of all namespaces; with =false, on those of the namespace of -n.")
	set.StringSliceVar(&f.Objects.Namespaces, "namespaces", nil, flags.NamespacesUsage)
	f.Objects.AddExcludeFlags(set)
	f.Objects.AddSelectorFlags(set)
	f.Canary.AddFlags(set)
	f.Write.AddGuardFlags(set)
	f.Write.AddJournalFlags(set)
	f.Client.AddFlags(set)
	f.Objects.AddKindsFlags(set)
	f.AddQuietFlag(set)
	set.Bool("skip-managed", false, "Leave out what others manage, as preview does.")
	set.BoolVar(&f.Spec.Drift, "exit-code", false, "Let the Job of a preview fail when something would change.")
	f.Report.AddClusterFlag(set)
	set.BoolVar(&f.Apply, "apply", false, "Apply the policies; without, preview them.")
	set.StringVar(&f.Spec.Name, "name", f.Spec.Name, "Name of the Job, and of all that belongs to it. That of a CronJob may have 52 characters.")
	set.StringVar(&f.Spec.Image, "image", f.Spec.Image, "Image of the program.")
	set.StringVar(&f.Spec.Schedule, "schedule", "", "Schedule of a CronJob, such as '17 * * * *'; without, it is a Job that runs once.")
	set.IntVar(&f.Spec.Shards, "shards", f.Spec.Shards, "Number of Pods that divide the objects among them.")
	set.StringVar(&f.Spec.Claim, "claim", "", "PersistentVolumeClaim for the journal and the metrics, which is there already; by default, with --apply one is printed.")
	set.StringVarP(&f.Output, "output", "o", f.Output, "Output format: one of yaml, json.")
}

// validate returns an error for flags that contradict each other.
func (f *jobFlags) validate(typed *pflag.FlagSet) error {
	if f.Output != formats.YAML && f.Output != formats.JSON {
		return &formats.UnknownFormatError{Format: f.Output, Allowed: []string{formats.YAML, formats.JSON}}
	}
	if _, _, err := f.Objects.Selectors(); err != nil {
		return err
	}
	switch err := f.Objects.ValidateNames(&genericclioptions.ConfigFlags{}); {
	case err != nil:
		return err
	case len(f.Objects.Namespaces) > 0 && typed.Changed("all-namespaces"):
		return errors.New("only one of -A/--all-namespaces and --namespaces can be used")
	case len(f.Objects.Namespaces) == 0 && !f.Objects.AllNamespaces && f.Spec.Shards > 1:
		return fmt.Errorf("--shards %d: divides the objects of all namespaces: leave out --all-namespaces=false", f.Spec.Shards)
	}
	if f.Apply && f.Spec.Drift {
		return errors.New("--exit-code is for the Job of a preview: leave out --apply")
	}
	if f.Apply && typed.Changed("skip-managed") {
		return errors.New("--skip-managed is for the Job of a preview: one that applies leaves alone what others manage")
	}
	if f.Apply && f.Report.Written != "" {
		return errors.New("--write-reports says how objects are, as a preview finds them: leave out --apply, or make a second Job")
	}
	guards := guardFlags()
	var err error
	typed.Visit(func(flag *pflag.Flag) {
		if guards.Lookup(flag.Name) != nil && !f.Apply && err == nil {
			err = fmt.Errorf("--%s: is for a run that writes: add --apply, or leave it out", flag.Name)
		}
	})
	if err != nil {
		return err
	}
	return f.Write.Validate()
}

// guardFlags returns the flags of a run that writes, for their names only: registering a flag sets its
// default.
func guardFlags() *pflag.FlagSet {
	var guards pflag.FlagSet
	w := flags.NewWrite()
	w.AddGuardFlags(&guards)
	w.AddJournalFlags(&guards)
	return &guards
}

// run prints the manifests for the types and names in args, reports the policies that the run would leave
// out, and returns the exit code.
func (f *jobFlags) run(ctx context.Context, typed *pflag.FlagSet, args []string) (int, error) {
	if err := f.validate(typed); err != nil {
		return process.ExitNothing, err
	}
	spec := f.Spec
	var err error
	if spec.Namespace, _, err = f.Config.ToRawKubeConfigLoader().Namespace(); err != nil {
		return process.ExitNothing, err
	}
	if err := spec.validate(); err != nil {
		return process.ExitNothing, err
	}
	var notes []string
	if !typed.Changed("image") && !process.IsRelease() {
		notes = append(notes, "this build is not a release, so it has no image: name one with --image")
	}
	kept := f.Objects.Namespaces
	if !f.Objects.AllNamespaces {
		kept = []string{spec.Namespace}
	}
	r := rbacFlags{Evaluate: f.Evaluate, For: string(permission.Preview), Report: f.Report, Fixed: true}
	r.Objects.Namespaces = nil // the namespace of -n is that of the Job
	if f.Apply {
		r.For = string(permission.Apply)
	}
	found, needs, more, err := r.needs(ctx, args, kept)
	if err != nil {
		return process.ExitNothing, err
	}
	spec.Roles = permission.Roles(spec.Namespace+":"+spec.Name, needs, listed(kept), nil)
	spec.Policies = slices.DeleteFunc(found.Documents, func(d engine.Document) bool {
		return d.Origin == cluster.Origin
	})
	spec.Records = f.Apply || f.Spec.Claim != ""
	spec.Command = f.command(typed, args, kept)
	objects, others, err := spec.manifests()
	if err != nil {
		return process.ExitNothing, err
	}
	notes = slices.Concat(notes, more, others)
	broken := printBroken(&found, "the run would be incomplete", f.Streams.ErrOut)
	if f.Apply && broken > 0 {
		return process.ExitNothing, fmt.Errorf("no Job was printed: %s in policies, with which it would write nothing; fix them, or leave their rules out with --skip", wording.Plural(broken, "error"))
	}
	if !f.Quiet {
		printNotes(notes, f.Streams.ErrOut)
	}
	return printManifests(f.Output, objects, notes, broken, f.Streams.Out)
}

// command returns the command line of the run, with the flags that it shares with job.
func (f *jobFlags) command(typed *pflag.FlagSet, args, namespaces []string) []string {
	guards := guardFlags()
	var others []string // flags that are not the run's
	typed.VisitAll(func(flag *pflag.Flag) {
		if !slices.Contains(runFlags, flag.Name) && guards.Lookup(flag.Name) == nil {
			others = append(others, flag.Name)
		}
	})
	out := []string{"preview"}
	if f.Apply {
		out = []string{preview.ApplyExisting, "--yes"}
	}
	out = append(out, args...)
	if f.Apply {
		out = append(out, fmt.Sprintf("--max-changes=%d", f.Write.MaxChanges),
			fmt.Sprintf("--journal-max-age=%s", f.Write.JournalMaxAge), "--journal-max-size="+
				f.Write.JournalMaxSize.String())
		others = append(others, "max-changes", "journal-max-age", "journal-max-size")
	} else {
		out = append(out, fmt.Sprintf("--exit-code=%t", f.Spec.Drift), "--output=summary")
	}
	switch len(namespaces) {
	case 0:
		out = append(out, "--all-namespaces")
	case 1:
		flag := "--namespace="
		if selector.HasWildcard(namespaces[0]) {
			flag = "--namespaces="
		}
		out = append(out, flag+namespaces[0])
	default:
		out = append(out, "--namespaces="+strings.Join(namespaces, ","))
	}
	return append(out, flags.Args(typed, others...)...)
}
