// Package test is the command test, which runs the tests of policies: in the format of Kyverno's command,
// for policies of all languages.
package test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"regexp"
	"runtime"
	"slices"
	"sync"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/kubectl/pkg/util/templates"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/factory"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/flags"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/output"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/output/formats"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/preview"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/process"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/write"
)

// Flags has the flags of test.
type Flags struct {
	flags.Evaluate
	FileName string
	Run      string
	With     []string
	Update   bool
	Init     bool
	Output   flags.Output
	Report   flags.Report
}

// Options are the parts of a run of tests.
type Options struct {
	Printer output.Printer
	Reports *formats.Reports // included in Printer

	factory *factory.Factory
	paths   []string
	name    string
	chosen  *regexp.Regexp // nil for all
	with    *standIns      // nil without --with
	updates bool           // writes wanted objects
	secrets bool           // even those of Secrets
	writing sync.Mutex     // of files
	first   *initial       // the test to write; nil runs tests
}

// NewCommand is `test`: the tests of policies.
func NewCommand(evaluate flags.Evaluate, name string) *cobra.Command {
	f := Flags{Evaluate: evaluate, Output: flags.NewOutput(formats.Diff)}
	f.Objects.None, f.Policies.Recorded = true, true // each test names its own
	c := &cobra.Command{
		Use:   "test [DIRECTORY | FILE ...]",
		Short: "Run the tests that policies have, in the format of Kyverno's command",
		Long: templates.LongDesc(`
			Run the tests that policies have: every kyverno-test.yaml below the directories, the
			current one by default, and the files that are named.

			A test is a document of kind Test of cli.kyverno.io/v1alpha1, as Kyverno's own command reads
			it, or one of its older form. Its policies may be of all languages: ClusterPolicies and Policies,
			MutatingPolicies, MutatingAdmissionPolicies and Gatekeeper's mutators. No cluster is
			needed. What a test says of rules that do not mutate is counted as not tested.

			Of a result that fails there is each field that is not as wanted, with its line in the
			file that wants it, and why the rule did not act.

			With --with, other policies are tested: those of the name of a policy in a test, in any language,
			and those that convert makes of its rules. So the tests of a ClusterPolicy prove its
			conversion.

			Exit codes: 0 all passed, 1 some failed, 2 there is no test, 3 some could not be run, or
			nothing was tested.`),
		Example: templates.Examples(fmt.Sprintf(`
			# All tests below this directory
			%[1]s test

			# Those of some policies
			%[1]s test policies/labels policies/images

			# The results of one rule, on one object
			%[1]s test --run 'team-labels/add-team on Pod shop/web'

			# Do the converted policies pass the tests of the old ones?
			%[1]s convert -p policies -o new && %[1]s test policies --with new

			# What comes out is right: want that from now on
			%[1]s test policies/labels --update

			# A first test of a policy: that it does what it does now
			%[1]s test --init -p policy.yaml -f deploy/shop tests/labels

			# For a pipeline
			%[1]s test policies --report junit=tests.xml --report github`, name)),
		RunE: func(c *cobra.Command, args []string) error {
			return process.RunE(c.Context())(f.ToOptions(c, args))
		},
	}
	c.Flags().StringVar(&f.FileName, "file-name", defaultName, "Name of the files of tests in directories.")
	c.Flags().StringVar(&f.Run, "run", "", "Regular expression: run only the results that it matches, each called \"FILE TEST: LANGUAGE POLICY/RULE on KIND NAMESPACE/NAME\".")
	c.Flags().StringArrayVar(&f.With, "with", nil, "File or directory of policies to test in the place of those that the tests name: those of the same name, and those that convert makes of their rules. May be given more than once.")
	c.Flags().BoolVar(&f.Update, "update", false, "Write the objects that come out into the files that want others, in place; comments and all else stay. Look at the difference before you commit it.")
	c.Flags().BoolVar(&f.Init, "init", false, "Write a first test, of the policies of -p and the objects of -f, into the directory: that they do what they do now.")
	c.Flags().StringArrayVarP(&f.Policies.Paths, "policy", "p", nil, "With --init: file or directory of policies. May be given more than once.")
	c.Flags().StringSliceVarP(&f.Objects.Filenames, "filename", "f", nil, "With --init: file or directory of objects.")
	f.AddExpandFlag(c.Flags())
	f.Context.AddAccessFlags(c.Flags())
	c.Flags().StringVarP(&f.Output.Format, "output", "o", f.Output.Format, "Output format: one of "+
		formats.Names(output.Options{Tests: true})+".")
	f.Output.AddValueFlags(c.Flags())
	f.Report.AddFlags(c.Flags(), formats.ReportNames(output.Options{Tests: true}))
	f.AddQuietFlag(c.Flags())
	return c
}

// ToOptions returns the options for the flags.
func (f *Flags) ToOptions(c *cobra.Command, args []string) (*Options, error) {
	o := &Options{paths: args, name: f.FileName, updates: f.Update, secrets: f.Output.ShowSecrets}
	if f.Init != (len(f.Policies.Paths)+len(f.Objects.Filenames) > 0) || f.Init &&
		(len(f.Policies.Paths) == 0 || len(f.Objects.Filenames) == 0 || len(args) > 1) {
		return nil, errInit
	}
	if f.Update && len(f.With) > 0 {
		return nil, errors.New("--update and --with cannot be used together: the tests of the old policies are to judge the new ones")
	}
	if len(args) == 0 {
		o.paths = []string{"."}
	}
	var err error
	if f.Run != "" {
		if o.chosen, err = regexp.Compile(f.Run); err != nil {
			return nil, fmt.Errorf("--run: %w", err)
		}
	}
	if o.factory, err = factory.Open(&f.Evaluate, f.Output.ShowSecrets, false); err != nil {
		return nil, err
	}
	if f.Init {
		o.first = &initial{
			Options: o, directory: o.paths[0], policies: f.Policies.Paths,
			objects: f.Objects.Filenames, wanted: map[string][]*unstructured.Unstructured{},
		}
	}
	if len(f.With) > 0 {
		if err := o.loadWith(c.Context(), f.With, o.factory.Options(engine.Request{})); err != nil {
			return nil, err
		}
	}
	options := o.factory.OutputOptions(f.Output, engine.Request{})
	options.Tests = true
	printer, err := formats.New(f.Output.Format, options)
	if err != nil {
		return nil, err
	}
	if o.Reports, err = o.factory.Reports(f.Report, options, c.Flags().Changed("output")); err != nil {
		return nil, err
	}
	o.Printer = o.Reports.Beside(printer)
	return o, nil
}

var errNoTest = errors.New("there is no test")

// Run runs the tests, prints the results, and returns the exit code.
func (o *Options) Run(ctx context.Context) (int, error) {
	run := o.run
	if o.first != nil {
		run = o.first.run
	}
	code, err := run(ctx)
	return code, errors.Join(err, o.Reports.Discard())
}

func (o *Options) run(ctx context.Context) (int, error) {
	files, err := find(o.paths, o.name)
	if err != nil {
		return process.ExitNothing, err
	}
	if len(files) == 0 {
		return process.ExitNothing, fmt.Errorf("%w: no file is called %s in %s; --file-name takes another name", errNoTest, o.name, engine.Few(o.paths))
	}
	total := output.Tests{Results: map[output.TestVerdict]int{}}
	var broken error
	err = write.ForEach(len(files), runtime.GOMAXPROCS(0)+1,
		func(i int) (outcome, error) { return o.file(ctx, files[i]) },
		func(_ int, found outcome) (enough bool, _ error) {
			if ctx.Err() == nil {
				broken = o.print(found, &total)
			}
			return ctx.Err() != nil || broken != nil, nil
		})
	switch {
	case ctx.Err() != nil:
		return process.Ended(context.Cause(ctx), "the run", total.Tests, o.Printer)
	case err != nil:
		return process.Ended(err, "the run", total.Tests, o.Printer)
	case broken != nil:
		return process.ExitIncomplete, broken
	}
	if err := errors.Join(o.Printer.Print(total), o.Printer.Close()); err != nil {
		return process.ExitIncomplete, err
	}
	return code(&total, o.chosen != nil)
}

// print prints and counts the results of a file.
func (o *Options) print(found outcome, total *output.Tests) error {
	total.Tests += found.tests
	for _, problem := range found.errs {
		total.Problems++
		fmt.Fprintf(o.factory.Streams.ErrOut, "error: %v\n", problem)
	}
	err := preview.PrintProblems(o.Printer, found.errs)
	for _, t := range found.results {
		total.Results[t.Verdict]++
		err = cmp.Or(err, o.Printer.Print(t))
	}
	return err
}

// code returns the exit code of tests.
func code(t *output.Tests, chosen bool) (int, error) {
	switch tested := t.Results[output.TestPassed] + t.Results[output.TestFailed]; {
	case t.Problems+t.Results[output.NotRun] > 0:
		return process.ExitIncomplete, nil
	case t.Results[output.TestFailed] > 0:
		return process.ExitChanges, nil
	case tested == 0 && chosen && len(t.Results) == 0:
		return process.ExitNothing, fmt.Errorf("%w that --run matches", errNoTest)
	case tested == 0:
		return process.ExitIncomplete, errors.New("nothing was tested: no result is of a rule that mutates")
	}
	return process.ExitOK, nil
}

// outcome has the results of the tests of a file.
type outcome struct {
	tests   int
	results []output.Tested
	errs    []error
}

// chooses reports whether --run selects a title in a test of a file. A test that cannot be run is selected
// by its policies and rules.
func (o *Options) chooses(path, test, title string) bool {
	return o.chosen == nil || o.chosen.MatchString(path+" "+test+": "+title)
}

// file runs the tests of a file.
func (o *Options) file(ctx context.Context, path string) (out outcome, err error) {
	documents, errs := read(ctx, path)
	if o.chooses(path, "", "") {
		out.errs = errs
	}
	for _, t := range documents {
		results, errs, err := o.document(ctx, path, t)
		if err != nil {
			return out, err
		}
		chosen := len(results) > 0 || o.chooses(path, t.name, "") ||
			slices.ContainsFunc(t.results, func(r *result) bool {
				return len(errs) > 0 && o.chooses(path, t.name, r.ref().String())
			})
		if chosen {
			out.tests++
			out.results, out.errs = append(out.results, results...), append(out.errs, errs...)
		}
	}
	return out, ctx.Err()
}

// document runs one test of a file. The last error ends the run; the others belong to the test.
func (o *Options) document(ctx context.Context, path string, t *document) ([]output.Tested, []error, error) {
	s := open(ctx, t, o.factory.Options(engine.Request{}), o.with)
	if len(t.results) == 0 && t.checks == nil {
		s.errs = append(s.errs, fmt.Errorf("%s: %s %s: there are no results in it, so nothing is tested", s.Origin, kind, s.name))
	}
	if slices.ContainsFunc(t.results, func(r *result) bool { return s.notOurs(r) == "" }) {
		if s.load(ctx); s.objects == nil {
			return nil, s.errs, ctx.Err()
		}
	}
	j := &judge{suite: s, runs: map[engine.Operation]*run{}, wantedBy: map[*engine.Change]*engine.Document{}}
	for _, r := range t.results {
		if j.runs[r.operation] != nil || j.notOurs(r) != "" {
			continue
		}
		run, err := s.evaluate(ctx, o.factory, r.operation)
		if err != nil {
			if ctx.Err() != nil {
				return nil, nil, err
			}
			return nil, append(s.errs, fmt.Errorf("%s: %w", s.Origin, err)), nil
		}
		j.runs[r.operation] = run
	}
	for _, r := range t.results {
		j.result(ctx, r)
	}
	if t.checks != nil {
		j.add(&result{node: t.checks.node},
			output.Tested{Verdict: output.NotTested, Foreign: true, Text: "checks are of an older Kyverno"})
	}
	j.out = slices.DeleteFunc(j.out, func(r output.Tested) bool { return !o.chooses(path, t.name, r.Title()) })
	if o.updates {
		o.update(ctx, j.out, j.wantedBy)
	}
	return j.out, s.errs, nil
}
