// Package fix is the command fix, which makes the changes of a preview in the files of the objects.
package fix

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/kubectl/pkg/util/templates"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/factory"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/flags"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/process"
)

// Flags has the flags of fix.
type Flags struct {
	flags.Evaluate
	Write, Check bool
	AllowSecrets bool
	Explain      bool
	GitDiff      string // a revision
}

// inputFlags lists the flags of preview for an evaluation without a cluster.
var inputFlags = []string{ //nolint:gochecknoglobals // an immutable table
	"policy", "only", "skip", "strict", "values", "assume-binding", "allow-unknown-kinds", "allow-http",
	"allow-registry",
	"filename", "kustomize", "recursive", "world", "exclude", "exclude-namespaces", "selector", "field-selector",
	"operation", "request-user", "request-group", "quiet",
}

// NewCommand is `fix`: the changes of a preview, in the files of the objects.
func NewCommand(evaluate flags.Evaluate, name string) *cobra.Command {
	f := Flags{Evaluate: evaluate}
	c := &cobra.Command{
		Use:        "fix (-f FILE|DIRECTORY | -k OVERLAY)",
		SuggestFor: []string{"edit", "rewrite"},
		Short:      "Make the changes in the manifests that the objects come from",
		Long: templates.LongDesc(`
			Make the changes that "preview -f" shows in the files that the objects come from: YAML, also of
			several documents, Lists, JSON.

			Only the lines that change are written. Comments, the order of keys, quotes, anchors, line ends
			and all other documents stay as they are. A file in which a change cannot be made without losing
			something else is left as it is, with an error that names the line. After fix --write, a preview of
			the files finds nothing: the policies are evaluated again on the result before anything is written.

			By default a diff of the files is printed, which "git apply" takes; --write writes the files,
			each whole or not at all. Values of Secrets are masked in the diff, and right in the files.

			With -k, the base of a kustomization stays as it is: a patch for each object that changes is written
			into the directory kubectl-mutate of the overlay, with its line in kustomization.yaml. The
			next run replaces them.

			A template of Helm is refused: change the values, or the chart.

			No cluster is needed. Policies read the objects of -f and --world; only files of -f,
			and of the overlay, are written.

			Exit codes: 0 nothing to change, or all written; 1 something would change (without --write);
			2 nothing was evaluated; 3 some objects could not be evaluated, or a file cannot be edited;
			130 interrupted.`),
		Example: templates.Examples(fmt.Sprintf(`
			# What would change in the files?
			%[1]s fix -p policy.yaml -f deploy/ -R

			# In a pipeline, or before a commit: the names of the files that would change
			%[1]s fix -p policy.yaml -f deploy/ -R --check

			# With the rules of each hunk
			%[1]s fix -p policy.yaml -f deploy/ -R --explain

			# Patches for an overlay
			%[1]s fix -p policy.yaml -k overlays/prod --write

			# Change them
			%[1]s fix -p policy.yaml -f deploy/ -R --write`, name)),
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			o, err := f.toOptions(c.Context())
			if err != nil {
				return err
			}
			return process.Exit(o.run(c.Context()))
		},
	}
	all := pflag.NewFlagSet("", pflag.ContinueOnError)
	f.AddInputFlags(all)
	f.Policies.AddStrictFlag(all)
	all.VisitAll(func(flag *pflag.Flag) {
		if slices.Contains(inputFlags, flag.Name) {
			c.Flags().AddFlag(flag)
		}
	})
	c.Flags().BoolVarP(&f.Write, "write", "w", false, "Write the files, and print the names of those that were written.")
	c.Flags().BoolVar(&f.Check, "check", false, "Print the names of the files that would change, and no diff.")
	c.Flags().BoolVar(&f.AllowSecrets, "allow-secrets-in-files", false, "Also write values that rules make of Secrets.")
	c.Flags().BoolVar(&f.Explain, "explain", false, "Name in each hunk of the diff the rules that make its changes.")
	c.Flags().StringVar(&f.GitDiff, "git-diff", "", "Change only files that, says git, are new or differ from this revision, such as HEAD or origin/main. All others are still read.")
	c.MarkFlagsMutuallyExclusive("write", "check", "explain")
	return c
}

// toOptions returns the options for the flags.
func (f *Flags) toOptions(ctx context.Context) (*options, error) {
	switch {
	case len(f.Objects.Filenames) == 0 && f.Objects.Kustomize == "":
		return nil, errors.New("no manifests: name them with -f/--filename, or an overlay with -k/--kustomize")
	case f.Objects.Kustomize != "" && f.GitDiff != "":
		return nil, errors.New("--git-diff is for the files of -f: an overlay is changed as a whole")
	case slices.Contains(f.Objects.Filenames, "-"):
		return nil, errors.New("standard input cannot be changed: name files with -f/--filename")
	}
	f.Annotate = false // the annotation is for objects of a cluster
	w, err := factory.OpenShared(&f.Evaluate, false)
	if err != nil {
		return nil, err
	}
	var stdin []byte
	if slices.Contains(f.Policies.Paths, "-") {
		if stdin, err = io.ReadAll(f.Streams.In); err != nil {
			return nil, err
		}
	}
	var since map[string]bool
	if f.GitDiff != "" {
		if since, err = changedSince(ctx, f.Objects.Filenames, f.GitDiff); err != nil {
			return nil, fmt.Errorf("--git-diff %s: %w", f.GitDiff, err)
		}
	}
	var over *overlay
	if f.Objects.Kustomize != "" {
		if over, err = openOverlay(ctx, f.Objects.Kustomize); err != nil {
			return nil, err
		}
	}
	o := &options{
		overlay: over, since: since, Flags: f, Out: f.Streams.Out, ErrOut: w.Streams.ErrOut,
		roots: f.Objects.Filenames, files: map[string]*manifest{},
	}
	o.open = func(errOut io.Writer) (*factory.Factory, error) {
		evaluate := f.Evaluate
		evaluate.Quiet = f.Quiet || errOut == io.Discard
		evaluate.Streams.In, evaluate.Streams.ErrOut = bytes.NewReader(stdin), errOut
		return factory.OpenShared(&evaluate, false)
	}
	o.first = f.Streams.ErrOut
	return o, nil
}
