package flags

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/cli-runtime/pkg/genericclioptions"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/selector"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/wording"
)

// Objects has the flags that choose the objects to evaluate, and the request to simulate.
type Objects struct {
	Filenames, World []string
	Kustomize        string
	Recursive        bool
	AllNamespaces    bool
	Namespaces       []string
	// Exclude has TYPE/NAME and NAMESPACE/TYPE/NAME; ExcludeNamespaces names. Both may have wildcards.
	Exclude, ExcludeNamespaces []string
	Selector                   string
	FieldSelector              string
	ChunkSize                  int64
	Operation                  string
	// None is for a run without objects, which needs no cluster for them.
	None          bool
	RequestUser   string
	RequestGroups []string
}

// NewObjects returns the defaults.
func NewObjects() Objects {
	return Objects{ChunkSize: 500, Operation: string(engine.OperationAuto)}
}

// AddFlags registers the flags.
func (f *Objects) AddFlags(flags *pflag.FlagSet) {
	flags.StringSliceVarP(&f.Filenames, "filename", "f", nil, "File or directory of objects, or - for standard input, to evaluate instead of a cluster. Policies read nothing but these objects and those of --world.")
	flags.StringVarP(&f.Kustomize, "kustomize", "k", "", "Directory with a kustomization.yaml, which is built as kubectl kustomize does but fetches nothing, instead of -f.")
	flags.BoolVarP(&f.Recursive, "recursive", "R", false, "Read the directories of -f and --world recursively.")
	flags.StringSliceVar(&f.World, "world", nil, "File or directory of objects that policies can read besides those of -f, of -k or of the cluster, and in place of those of the same name, but that are not evaluated.")
	flags.BoolVarP(&f.AllNamespaces, "all-namespaces", "A", false, "Choose the objects of all namespaces.")
	flags.StringSliceVar(&f.Namespaces, "namespaces", nil, NamespacesUsage)
	f.AddExcludeFlags(flags)
	f.AddSelectorFlags(flags)
	flags.Int64Var(&f.ChunkSize, "chunk-size", f.ChunkSize, "Read large lists in chunks of this size; 0 turns chunks off.")
	flags.StringVar(&f.Operation, "operation", f.Operation, "Operation that policies see: CREATE, UPDATE, DELETE (for the triggers of mutate-existing rules), or auto: UPDATE, and beside it what CREATE would do differently.")
	flags.StringVar(&f.RequestUser, "request-user", "", "User that policies see as the one who makes the request.")
	flags.StringSliceVar(&f.RequestGroups, "request-group", nil, "Group of that user. May be given more than once.")
}

// NamespacesUsage is the usage of --namespaces.
const NamespacesUsage = "Choose the objects of these namespaces, such as --namespaces a,b,'team-*'. May be given more than once."

// AddExcludeFlags registers the flags that leave objects out.
func (f *Objects) AddExcludeFlags(flags *pflag.FlagSet) {
	flags.StringSliceVar(&f.Exclude, "exclude", nil, "Leave out these objects, as TYPE/NAME or NAMESPACE/TYPE/NAME, with wildcards: --exclude deploy/web,'shop/*/legacy-*'. May be given more than once.")
	flags.StringSliceVar(&f.ExcludeNamespaces, "exclude-namespaces", nil, "Leave out these namespaces and all objects in them, such as --exclude-namespaces kube-system,'team-*'. May be given more than once.")
}

// ValidateNames returns an error for invalid names of namespaces and objects, and for --namespaces with -n.
func (f *Objects) ValidateNames(config *genericclioptions.ConfigFlags) error {
	some := slices.ContainsFunc(f.Namespaces, selector.HasWildcard)
	switch {
	case f.Namespaces != nil && len(f.Namespaces) == 0:
		return errors.New("--namespaces: name one namespace or more, such as --namespaces a,b,c")
	case f.Namespaces != nil && config.Namespace != nil && *config.Namespace != "":
		return errors.New("only one of -n/--namespace and --namespaces can be used")
	case len(f.ExcludeNamespaces) > 0 && !f.AllNamespaces && !some && (!f.Offline() || f.Namespaces != nil):
		return errors.New("--exclude-namespaces leaves out some of several namespaces: add -A, or --namespaces with a wildcard")
	}
	for _, names := range []struct {
		flag string
		all  []string
	}{{"namespaces", f.Namespaces}, {"exclude-namespaces", f.ExcludeNamespaces}} {
		for _, name := range names.all {
			if len(validation.IsDNS1123Label(strings.NewReplacer("*", "a", "?", "a").Replace(name))) > 0 {
				return fmt.Errorf("--%s %q: is not a valid name of a namespace: at most 63 lower-case letters, digits and '-', the first and the last of them a letter or digit, or wildcards", names.flag, name)
			}
		}
	}
	for _, text := range f.Exclude {
		parts := strings.Split(text, "/")
		if len(parts) < 2 || len(parts) > 3 || slices.Contains(parts, "") || selector.CheckWildcard(text) != nil {
			return fmt.Errorf("--exclude %q: is not a valid TYPE/NAME or NAMESPACE/TYPE/NAME; for all objects of a type use TYPE/*", text)
		}
	}
	return nil
}

// AddSelectorFlags registers the flags that select on the server.
func (f *Objects) AddSelectorFlags(flags *pflag.FlagSet) {
	flags.StringVarP(&f.Selector, "selector", "l", "", "Label selector of the objects that may change, such as -l app=web,tier!=db.")
	flags.StringVar(&f.FieldSelector, "field-selector", "", "Field selector of the objects that may change, such as --field-selector metadata.name=web.")
}

// AddKindsFlags registers the flags of a command that needs the kinds of a cluster, but not its objects.
func (f *Objects) AddKindsFlags(flags *pflag.FlagSet) {
	flags.BoolVar(&f.None, "offline", false, "Ask no server for its kinds: they are those of Kubernetes, and of CustomResourceDefinitions among the files of -p, -f and --world.")
	flags.StringSliceVarP(&f.Filenames, "filename", "f", nil, "File or directory of objects of which kinds are known, such as CustomResourceDefinitions; no server is asked.")
	flags.StringSliceVar(&f.World, "world", nil, "As -f.")
	flags.BoolVarP(&f.Recursive, "recursive", "R", false, "Read the directories of -f and --world recursively.")
}

// Offline reports whether objects come from manifests and not from a cluster.
func (f *Objects) Offline() bool { return len(f.Filenames) > 0 || f.Kustomize != "" || f.None }

// Request returns the admission request to simulate.
func (f *Objects) Request() (engine.Request, error) {
	operation := engine.Operation(strings.ToUpper(f.Operation))
	if strings.EqualFold(f.Operation, string(engine.OperationAuto)) {
		operation = engine.OperationAuto
	}
	switch operation {
	case engine.OperationAuto, engine.OperationCreate, engine.OperationUpdate, engine.OperationDelete:
	default:
		return engine.Request{}, fmt.Errorf("--operation %q: use auto, CREATE, UPDATE or DELETE", f.Operation)
	}
	user := engine.UserInfo{Username: f.RequestUser, Groups: f.RequestGroups}
	return engine.Request{Operation: operation, User: user}, nil
}

// SelectorFlags returns the selector flags as they are typed, or "".
func (f *Objects) SelectorFlags() string {
	var words []string
	if f.Selector != "" {
		words = append(words, "-l "+wording.ShellQuote(f.Selector))
	}
	if f.FieldSelector != "" {
		words = append(words, "--field-selector "+wording.ShellQuote(f.FieldSelector))
	}
	return strings.Join(words, " ")
}

// Selectors parses the label and field selectors; nil selects everything.
func (f *Objects) Selectors() (labels.Selector, fields.Selector, error) {
	var byLabel labels.Selector
	var byField fields.Selector
	var err error
	if f.Selector != "" {
		if byLabel, err = labels.Parse(f.Selector); err != nil {
			return nil, nil, fmt.Errorf("-l/--selector: %w", err)
		}
	}
	if f.FieldSelector != "" {
		if byField, err = fields.ParseSelector(f.FieldSelector); err != nil {
			return nil, nil, fmt.Errorf("--field-selector: %w", err)
		}
	}
	return byLabel, byField, nil
}

// Validate returns an error for flags that would otherwise be ignored.
func (f *Objects) Validate() error {
	switch {
	case f.Kustomize != "" && len(f.Filenames) > 0:
		return errors.New("only one of -f/--filename and -k/--kustomize can be used")
	case f.Kustomize != "" && f.Recursive && len(f.World) == 0:
		return errors.New("-R/--recursive cannot be used with -k/--kustomize: a kustomization names its files")
	case f.AllNamespaces && f.Namespaces != nil:
		return errors.New("only one of -A/--all-namespaces and --namespaces can be used")
	case f.ChunkSize < 0:
		return fmt.Errorf("--chunk-size %d: must not be negative", f.ChunkSize)
	}
	return nil
}
