package flags

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/selector"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/wording"
)

// The flags whose values are files that a run reads or writes.
var (
	readFrom  = []string{"policy", "with", "filename", "kustomize", "world", "values", "plan", "resume"} //nolint:gochecknoglobals // an immutable table
	writtenTo = []string{"save", "metrics", "journal", "report"}                                         //nolint:gochecknoglobals // an immutable table
)

// stdio stands for a standard stream in place of a file.
const stdio = "-"

// CheckFiles returns an error if two flags write one file, or one would overwrite a file that the run reads.
// Read lists files that are read without a flag.
func CheckFiles(typed *pflag.FlagSet, read ...string) error {
	taken := map[string]string{} // by path, the flag as it was typed
	for _, name := range read {
		taken[place(name)] = name
	}
	var err error
	typed.Visit(func(f *pflag.Flag) {
		if slices.Contains(readFrom, f.Name) {
			for _, name := range values(f) {
				taken[place(name)] = "--" + f.Name + " " + name
			}
		}
	})
	typed.Visit(func(f *pflag.Flag) {
		if !slices.Contains(writtenTo, f.Name) {
			return
		}
		for _, text := range values(f) {
			name, this := text, "--"+f.Name+" "+text
			if f.Name == "report" {
				_, name, _ = strings.Cut(text, "=")
			}
			if name == "" || name == stdio || strings.HasPrefix(place(name), "/dev/") {
				continue
			}
			if other, is := taken[place(name)]; is && err == nil {
				err = fmt.Errorf("%s and %s are the same file: name another one", other, this)
			}
			taken[place(name)] = this
		}
	})
	return err
}

// place returns the absolute path of a file.
func place(name string) string {
	if absolute, err := filepath.Abs(name); err == nil {
		return absolute
	}
	return filepath.Clean(name)
}

// TakePolicies adds the files in front of the arguments to the policies, and returns the rest: a shell makes
// -p a.yaml b.yaml of -p *.yaml. It is an error without -p, or with another flag that the files may belong
// to.
func TakePolicies(typed *pflag.FlagSet, args []string) ([]string, error) {
	policies := typed.Lookup("policy")
	if len(args) > 0 && filepath.Ext(args[0]) == ".plan" && typed.Lookup("plan") != nil &&
		!typed.Changed("plan") {
		return nil, fmt.Errorf("%s is a plan: use --plan %[1]s", wording.ShellQuote(args[0]))
	}
	for len(args) > 0 && isManifest(args[0]) {
		if !policies.Changed {
			return nil, fmt.Errorf("%s is a file: did you mean -p %[1]s?", wording.ShellQuote(args[0]))
		}
		for _, other := range []string{"with", "filename", "world"} {
			if typed.Changed(other) {
				return nil, fmt.Errorf("%s is a file, of --policy or of --%s: repeat the flag in front of each file, or name their directory", wording.ShellQuote(args[0]), other)
			}
		}
		if err := typed.Set(policies.Name, args[0]); err != nil {
			return nil, err
		}
		args = args[1:]
	}
	return args, nil
}

// isManifest reports whether an argument is a file with the name of a manifest.
func isManifest(arg string) bool {
	switch filepath.Ext(arg) {
	case ".yaml", ".yml", ".json":
		info, err := os.Stat(arg)
		return err == nil && !info.IsDir()
	}
	return false
}

// Policies has the flags that choose the policies.
type Policies struct {
	Paths       []string
	FromCluster bool
	Rules       engine.RuleFilter
	// UnknownKinds are patterns of unknown kinds and resources that policies may name.
	UnknownKinds []string
	// AssumeBinding evaluates MutatingAdmissionPolicies that nothing binds.
	AssumeBinding bool
	Strict        bool // a warning of a policy is an error
	Recorded      bool // those of a plan or a journal
}

// AddFlags registers the flags.
func (f *Policies) AddFlags(flags *pflag.FlagSet) {
	flags.StringArrayVarP(&f.Paths, "policy", "p", nil, "File, directory or URL of policies, or - for standard input. May be given more than once; directories are read recursively.")
	flags.BoolVar(&f.FromCluster, "from-cluster", false, "Also use the policies that are installed in the cluster. A policy from a file replaces the installed one of the same name.")
	flags.StringSliceVar(&f.Rules.Only, "only", nil, "Evaluate only these policies or rules: POLICY or POLICY/RULE.")
	flags.StringSliceVar(&f.Rules.Skip, "skip", nil, "Leave out these policies or rules: POLICY or POLICY/RULE.")
	flags.BoolVar(&f.AssumeBinding, "assume-binding", false, "Evaluate MutatingAdmissionPolicies without a binding, installed ones too, as if they were bound to everything that they match.")
	flags.StringSliceVar(&f.UnknownKinds, "allow-unknown-kinds", nil, "Kinds or resources that policies may name although there are none, such as those of custom resources that are not installed: KIND or RESOURCE, with * for any text. Any other that is unknown is an error of its policy.")
}

// AddStrictFlag registers the flag of the commands that warn about policies.
func (f *Policies) AddStrictFlag(flags *pflag.FlagSet) {
	flags.BoolVar(&f.Strict, "strict", false, "Take warnings about policies for errors (exit code 3): deprecated versions, documents that are no policies, rules that match no object or warn about one.")
}

// AllowsUnknown reports whether policies may name an unknown kind or resource.
func (f *Policies) AllowsUnknown(name string) bool {
	return slices.ContainsFunc(f.UnknownKinds, func(pattern string) bool {
		return selector.MatchWildcard(pattern, name)
	})
}

// Validate returns an error if no policies are given.
func (f *Policies) Validate() error {
	if len(f.Paths) == 0 && !f.FromCluster && !f.Recorded {
		return errors.New("no policies: use -p/--policy for files, or --from-cluster for those that are installed")
	}
	return nil
}
