package factory

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/cli-runtime/pkg/printers"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/cluster"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/flags"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/input"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/output"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/output/report"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/process"
)

// Fleet makes the parts of runs on several clusters: a Factory without a client for their common part, and
// one for each cluster. With one cluster it is its Factory.
type Fleet struct {
	*Factory
	Contexts []string // nil for one cluster
	notices  Notices  // of the clusters' runs
	stdin    []byte   // standard input, for each cluster
	terminal bool     // standard error is a terminal
}

// OpenFleet is Open for a command that reads one cluster, or those of the chosen contexts, without
// duplicates. More are paths that each run reads besides those of the flags.
func OpenFleet(evaluate *flags.Evaluate, chosen *flags.Contexts, showSecrets bool,
	more ...string,
) (*Fleet, error) {
	if !chosen.Given() {
		one, err := Open(evaluate, showSecrets, false)
		return &Fleet{Factory: one}, err
	}
	shared, err := OpenShared(evaluate, showSecrets)
	if err != nil {
		return nil, err
	}
	f := &Fleet{Factory: shared, terminal: printers.IsTerminal(evaluate.Streams.ErrOut)}
	config, err := evaluate.Config.ToRawKubeConfigLoader().RawConfig()
	if err != nil {
		return nil, err
	}
	all, err := ContextsNamed(&config, chosen.Names)
	if err != nil {
		return nil, err
	}
	for _, name := range RepeatedContexts(chosen.Names) {
		f.note("--contexts", name+" is named twice; it is taken once")
	}
	var notes []string
	f.Contexts, notes = DistinctContexts(&config, all, evaluate.Objects.AllNamespaces ||
		shared.NamespacesTyped())
	for _, text := range notes {
		f.note("--contexts", text)
	}
	return f, f.readStdin(more)
}

// readStdin keeps standard input if it is named, and refuses pipes, which can be read only once.
func (f *Fleet) readStdin(more []string) error {
	paths := slices.Concat(f.Policies.Paths, f.Objects.World, []string{f.Context.Values}, more)
	for _, path := range paths {
		if info, err := os.Stat(path); err == nil && info.Mode()&os.ModeNamedPipe != 0 {
			return fmt.Errorf("%s is a pipe, which cannot be read for each cluster: use a file, or -p -", path)
		}
	}
	if !slices.Contains(paths, "-") || f.Streams.In == nil {
		return nil
	}
	var err error
	f.stdin, err = io.ReadAll(f.Streams.In)
	return err
}

// Fleet returns the run on all clusters.
func (f *Fleet) Fleet(chosen *flags.Contexts) *FleetRun {
	out := &FleetRun{AtOnce: chosen.AtOnce, ShowSecrets: f.ShowSecrets, Meter: f.progress}
	for _, name := range f.Contexts {
		out.Members = append(out.Members, &Member{Name: name})
	}
	if f.terminal && !f.Quiet {
		out.Ended = func(m *Member) { fmt.Fprintf(f.Streams.ErrOut, "%s\n", m) }
	}
	return out
}

// At returns the Factory of one cluster, whose client can only read. Its messages go to the Notices.
func (f *Fleet) At(m *Member) (*Factory, error) {
	evaluate := *f.Evaluate
	evaluate.Config = flags.ConfigOf(f.Config, m.Name)
	errOut := f.notices.Of(m.Name)
	out := &Factory{
		Evaluate: &evaluate, ShowSecrets: f.ShowSecrets, stdout: io.Discard, stderr: errOut,
		Streams: genericiooptions.IOStreams{In: bytes.NewReader(f.stdin), Out: io.Discard, ErrOut: errOut},
	}
	out.reader = &input.Reader{Stdin: out.Streams.In}
	err := out.connect(false)
	if err == nil {
		m.Server = out.Client.Info().Server
	}
	return out, err
}

// TellNotices prints the messages and errors of the runs on the clusters, except of runs that the user
// stopped.
func (f *Fleet) TellNotices(run *FleetRun) error {
	for _, m := range run.Members {
		if m.Err != nil && !process.Interrupted(m.Err) {
			fmt.Fprintf(f.notices.Of(m.Name), "error: %v\n", m.Err)
		}
	}
	return f.notices.Flush(f.stderr, f.Contexts)
}

// OnAll returns the options of printers for a run on several clusters.
func OnAll(o output.Options, contexts []string) output.Options {
	o.Context.Context, o.Context.Time = strings.Join(contexts, ", "), time.Now().UTC().Format(time.RFC3339)
	return o
}

// OutputOptions returns the options of printers with the context of all runs.
func (f *Fleet) OutputOptions(out flags.Output, request engine.Request) output.Options {
	o := f.Factory.OutputOptions(out, request)
	if f.Contexts == nil {
		return o
	}
	if o = OnAll(o, f.Contexts); !f.NamespacesTyped() {
		o.Context.Namespace = ""
	}
	return o
}

// ClusterReports are reports in a cluster, named as FORMAT or FORMAT=NAME.
type ClusterReports struct {
	API  report.PolicyReportAPI
	Name string
}

// ParseClusterReports reads the value of --write-reports.
func ParseClusterReports(text string) (ClusterReports, error) {
	format, name, named := strings.Cut(text, "=")
	out := ClusterReports{Name: "kubectl-mutate"}
	switch format {
	case "policyreport":
		out.API = report.WGPolicyAPI()
	case "openreports":
		out.API = report.OpenReportsAPI()
	default:
		return out, fmt.Errorf("--write-reports %q: use policyreport or openreports, or FORMAT=NAME", text)
	}
	if named {
		out.Name = name
	}
	if problems := validation.IsDNS1123Label(out.Name); len(problems) > 0 {
		return out, fmt.Errorf("--write-reports %q: the name must consist of at most 63 lower-case letters, digits and '-', the first and the last of them a letter or digit", text)
	}
	return out, nil
}

// Kinds returns the kinds of reports on namespaced and on cluster-scoped objects.
func (c ClusterReports) Kinds() [2]schema.GroupVersionKind {
	return [2]schema.GroupVersionKind{c.API.Kind(), c.API.ClusterKind()}
}

// Open returns a client that can write only such reports.
func (c ClusterReports) Open(config *genericclioptions.ConfigFlags,
	client flags.Client,
) (*cluster.ReportClient, error) {
	read, err := cluster.New(config, cluster.Options{ReadOnly: true})
	if err != nil {
		return nil, err
	}
	var resources []schema.GroupResource
	for _, kind := range c.Kinds() {
		mapping, err := read.Mapper().RESTMapping(kind.GroupKind(), kind.Version)
		if meta.IsNoMatchError(err) {
			return nil, fmt.Errorf("the cluster has no %s of %s: install the CustomResourceDefinitions of that API", kind.Kind, kind.GroupVersion())
		}
		if err != nil {
			return nil, err
		}
		resources = append(resources, mapping.Resource.GroupResource())
	}
	write, err := cluster.New(config,
		cluster.Options{QPS: client.QPS, Burst: client.Burst, ReadOnly: true, But: resources})
	return &cluster.ReportClient{Client: write, FieldManager: c.Name}, err
}

// Options returns the options of the reports of a scope.
func (c ClusterReports) Options(scope engine.Scope) report.StoreOptions {
	kinds := c.Kinds()
	return report.StoreOptions{Name: c.Name, Kind: kinds[0], ClusterKind: kinds[1], Scope: scope, Workers: 8}
}

// store begins the reports of a run in the cluster; nil without --write-reports.
func (f *Factory) store(ctx context.Context, args []string,
	written string,
) (*report.Store, report.PolicyReportAPI, error) {
	if written == "" {
		return nil, report.PolicyReportAPI{}, nil
	}
	c, err := ParseClusterReports(written)
	switch {
	case err != nil:
		return nil, c.API, err
	case f.Client == nil:
		return nil, c.API, errors.New("--write-reports needs a cluster: -f/--filename and -k/--kustomize name manifests; use --report FORMAT=FILE")
	case f.ShowSecrets:
		return nil, c.API, errors.New("--write-reports cannot be used with --show-secrets: others may read the reports")
	}
	scope, err := f.scope(f.Client.Mapper(), args, engine.Request{})
	if err != nil {
		return nil, c.API, err
	}
	client, err := c.Open(f.Config, f.Evaluate.Client)
	if err != nil {
		return nil, c.API, fmt.Errorf("--write-reports %s: %w", written, err)
	}
	return report.NewStore(ctx, client, c.Options(scope)), c.API, nil
}
