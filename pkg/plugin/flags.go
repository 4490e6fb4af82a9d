package plugin

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
)

// PolicyFlags choose the policies.
type PolicyFlags struct {
	Paths       []string
	FromCluster bool
	Only, Skip  []string

	recorded bool // those of a plan or a journal
}

// AddFlags registers the flags.
func (f *PolicyFlags) AddFlags(c *cobra.Command) {
	flags := c.Flags()
	flags.StringArrayVarP(&f.Paths, "policy", "p", nil, "File, directory or URL of policies, or - for standard input. May be given more than once; directories are read recursively.")
	flags.BoolVar(&f.FromCluster, "from-cluster", false, "Also evaluate the policies that are installed in the cluster. A policy from a file takes the place of the installed one of the same name.")
	flags.StringSliceVar(&f.Only, "only", nil, "Evaluate these policies or rules alone: POLICY or POLICY/RULE.")
	flags.StringSliceVar(&f.Skip, "skip", nil, "Leave out these policies or rules: POLICY or POLICY/RULE.")
}

// Validate refuses a command line that names no policies.
func (f *PolicyFlags) Validate() error {
	if len(f.Paths) == 0 && !f.FromCluster && !f.recorded {
		return errors.New("no policies: name files with -p/--policy, or use --from-cluster for those that are installed")
	}
	return nil
}

// ObjectFlags choose the objects to evaluate, and the request to simulate.
type ObjectFlags struct {
	Filenames, World []string
	Recursive        bool
	AllNamespaces    bool
	Selector         string
	FieldSelector    string
	ChunkSize        int64
	Operation        string
	RequestUser      string
	RequestGroups    []string
}

// NewObjectFlags returns the defaults.
func NewObjectFlags() ObjectFlags {
	return ObjectFlags{ChunkSize: 500, Operation: string(engine.OperationAuto)}
}

// AddFlags registers the flags.
func (f *ObjectFlags) AddFlags(c *cobra.Command) {
	flags := c.Flags()
	flags.StringSliceVarP(&f.Filenames, "filename", "f", nil, "File or directory of objects, or - for standard input, instead of a cluster: they are the objects to evaluate and the world that the policies read.")
	flags.BoolVarP(&f.Recursive, "recursive", "R", false, "Read the directories of -f recursively.")
	flags.StringSliceVar(&f.World, "world", nil, "File or directory of objects that exist beside those of -f, but are not evaluated themselves.")
	flags.BoolVarP(&f.AllNamespaces, "all-namespaces", "A", false, "Evaluate the objects of all namespaces.")
	flags.StringVarP(&f.Selector, "selector", "l", "", "Label selector of the objects to evaluate, such as -l app=web,tier!=db.")
	flags.StringVar(&f.FieldSelector, "field-selector", "", "Field selector of the objects to evaluate, such as --field-selector metadata.name=web.")
	flags.Int64Var(&f.ChunkSize, "chunk-size", f.ChunkSize, "Read large lists in chunks of this size; 0 turns chunks off.")
	flags.StringVar(&f.Operation, "operation", f.Operation, "Operation that policies see: CREATE, UPDATE, DELETE (for the triggers of mutate-existing rules), or auto: UPDATE, and CREATE for rules that run on nothing else.")
	flags.StringVar(&f.RequestUser, "request-user", "", "User that policies see as the one who makes the request.")
	flags.StringSliceVar(&f.RequestGroups, "request-group", nil, "Group of that user. May be given more than once.")
}

// Offline tells whether objects come from manifests and not from a cluster.
func (f *ObjectFlags) Offline() bool { return len(f.Filenames) > 0 }

// Request is the admission request to simulate.
func (f *ObjectFlags) Request() (engine.Request, error) {
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

// selectors parses the label and field selectors; nil selects everything.
func (f *ObjectFlags) selectors() (labels.Selector, fields.Selector, error) {
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

// Validate refuses combinations that would be ignored in silence.
func (f *ObjectFlags) Validate() error {
	switch {
	case len(f.World) > 0 && !f.Offline():
		return errors.New("--world adds to the objects of -f/--filename; a live cluster is its own world")
	case f.ChunkSize < 0:
		return fmt.Errorf("--chunk-size %d: must not be negative", f.ChunkSize)
	}
	return nil
}

// ClientFlags limit the requests to the API server.
type ClientFlags struct {
	QPS   float32
	Burst int
}

// NewClientFlags returns limits that let a large cluster be read in reasonable
// time; client-go's own 5 and 10 would make 1,000 objects a matter of minutes.
func NewClientFlags() ClientFlags { return ClientFlags{QPS: 50, Burst: 300} }

// AddFlags registers the flags.
func (f *ClientFlags) AddFlags(c *cobra.Command) {
	c.Flags().Float32Var(&f.QPS, "kube-api-qps", f.QPS, "Requests per second to the API server, on average.")
	c.Flags().IntVar(&f.Burst, "kube-api-burst", f.Burst, "Requests to the API server that may be made at once.")
}
