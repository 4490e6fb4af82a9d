package plugin

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/dialects"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/snapshot"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/accessreview"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/cluster"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/manifest"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/policysource"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/progress"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/render"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/secret"
)

// EvaluateFlags are what preview and apply-existing share.
type EvaluateFlags struct {
	Policies PolicyFlags
	Objects  ObjectFlags
	Context  ContextFlags
	Client   ClientFlags
	Metrics  MetricsFlags
	// Annotate leaves Kyverno's annotation on the targets of mutate-existing rules.
	Annotate bool
	// Quiet leaves out progress, notices and warnings on standard error.
	Quiet  bool
	Config *genericclioptions.ConfigFlags
}

// NewEvaluateFlags returns the defaults. Config holds the flags by which kubectl
// itself finds a cluster; they are registered elsewhere, for all commands.
func NewEvaluateFlags(config *genericclioptions.ConfigFlags) EvaluateFlags {
	return EvaluateFlags{Objects: NewObjectFlags(), Client: NewClientFlags(), Annotate: true, Config: config}
}

// AddFlags registers the flags.
func (f *EvaluateFlags) AddFlags(c *cobra.Command) {
	f.Policies.AddFlags(c)
	f.Objects.AddFlags(c)
	f.Context.AddFlags(c)
	f.Client.AddFlags(c)
	f.Metrics.AddFlags(c)
	c.Flags().BoolVarP(&f.Quiet, "quiet", "q", false, "Tell no progress and no warnings on standard error; errors are told.")
	c.Flags().BoolVar(&f.Annotate, "annotate", f.Annotate, "Beside a change to the target of a mutate-existing rule, add a line to its annotation policies.kyverno.io/last-applied-patches.")
}

// Validate refuses what cannot be meant.
func (f *EvaluateFlags) Validate() error {
	if err := f.Policies.Validate(); err != nil {
		return err
	}
	if f.Objects.Offline() && f.Policies.FromCluster {
		return errors.New("--from-cluster reads a cluster and -f/--filename does without one: choose one of them")
	}
	if err := f.Metrics.Validate(); err != nil {
		return err
	}
	return f.Objects.Validate()
}

// wiring turns flags into the parts of a run.
type wiring struct {
	*EvaluateFlags
	streams  genericiooptions.IOStreams
	stdout   io.Writer       // as it was handed in; streams.Out may wrap it
	progress *progress.Meter // nil tells none
	reader   *manifest.Reader
	masker   *secret.Masker  // nil when Secrets may be shown
	secrets  *secret.Masker  // knows what must not go into files; never nil
	client   *cluster.Client // nil offline
	snapshot *snapshot.Snapshot
}

// wire opens what the flags name: a client that can only read, unless the
// command writes, or the manifests. It sends no request.
func (f *EvaluateFlags) wire(streams genericiooptions.IOStreams, showSecrets, writes bool) (*wiring, error) {
	if err := f.Validate(); err != nil {
		return nil, err
	}
	w := &wiring{EvaluateFlags: f, streams: streams, stdout: streams.Out, reader: &manifest.Reader{Stdin: streams.In}, secrets: &secret.Masker{}}
	if !showSecrets {
		w.masker = w.secrets
	}
	w.tellProgress()
	w.streams.ErrOut = notices{w.streams.ErrOut, w.masker}
	if f.Objects.Offline() {
		return w, nil
	}
	options := cluster.Options{
		QPS: f.Client.QPS, Burst: f.Client.Burst,
		ReadOnly: !writes, ChunkSize: f.Objects.ChunkSize, Waiting: w.progress.Waiting,
	}
	if !f.Quiet {
		options.Warnings = w.streams.ErrOut
	}
	var err error
	w.client, err = cluster.New(f.Config, options)
	return w, err
}

// options reads policies and manifests and joins everything that an evaluation
// needs. Args are the types and names that the user typed.
func (w *wiring) options(ctx context.Context, args []string, request engine.Request) (*EvaluateOptions, error) {
	o := &EvaluateOptions{
		Dialects: dialects.All(),
		Rules:    engine.RuleFilter{Only: w.Policies.Only, Skip: w.Policies.Skip},
		Request:  request, ErrOut: w.streams.ErrOut, Quiet: w.Quiet, Progress: w.progress,
		World: &engine.World{Now: time.Now(), Seed: rand.Uint64(), Limits: engine.DefaultLimits(), Memo: &engine.Memo{}},
	}
	w.Context.grant(o.World)
	if err := w.loadPolicies(ctx, o); err != nil {
		return nil, err
	}
	values, err := w.Context.loadValues(ctx, w.reader)
	if err != nil {
		return nil, err
	}
	mapper, err := w.openWorld(ctx, o, supplied(o.Dialects, values))
	if err != nil {
		return nil, err
	}
	o.Documents = append(o.Documents, values...)
	scope, err := w.scope(mapper, args, request)
	if err != nil {
		return nil, err
	}
	o.World.Mapper = mapper
	o.Objects = w.source(ctx, scope)
	w.learn(o)
	return o, nil
}

// learn has the Secrets that a run reads remembered.
func (w *wiring) learn(o *EvaluateOptions) {
	o.World.Reader = w.secrets.Reader(o.World.Reader)
	o.World.Raw = w.secrets.RawReader(o.World.Raw)
	o.Objects = w.secrets.Source(o.Objects)
}

func (w *wiring) loadPolicies(ctx context.Context, o *EvaluateOptions) error {
	accepts := besidePolicies(o.Dialects)
	source := policysource.Source{Paths: w.Policies.Paths, Reader: w.reader, Accepts: accepts, Warn: w.warnAt}
	if w.Policies.FromCluster {
		source.FromCluster = func(ctx context.Context) ([]engine.Document, error) {
			return w.client.PolicyDocuments(ctx, accepts)
		}
	}
	documents, err := source.Load(ctx)
	if err != nil && (len(documents) == 0 || errors.Is(err, policysource.ErrNoPolicy)) {
		return err
	}
	for _, problem := range unjoin(err) {
		fmt.Fprintf(w.streams.ErrOut, "error: %v\n", problem)
		o.Unreadable = append(o.Unreadable, problem)
	}
	o.Documents = documents
	if w.client != nil && !w.Policies.FromCluster {
		o.Documents = append(w.installedInputs(ctx, o), documents...)
	}
	return nil
}

// installedInputs are what the cluster's engines go by beside policies, such as
// exceptions and excluded namespaces: it holds for policies from files too. What
// the user may not read is told, and stands in nobody's way.
func (w *wiring) installedInputs(ctx context.Context, o *EvaluateOptions) []engine.Document {
	fromFiles := map[engine.ObjectKey]bool{}
	for _, d := range o.Documents {
		fromFiles[engine.KeyOf(d.Object).Named()] = true
	}
	role := func(gk schema.GroupKind) engine.Role {
		for _, d := range o.Dialects {
			if d.Accepts(gk) == engine.Input && len(accepted(d, o.Documents)) > 0 {
				return engine.Input
			}
		}
		return engine.Foreign
	}
	installed, err := w.client.PolicyDocuments(ctx, role)
	for _, problem := range unjoin(err) {
		var part *engine.UnreadableError
		if errors.As(problem, &part) { // anything else ends the run when objects are read
			w.warn(fmt.Errorf("%w; evaluated as if there were none", part))
		}
	}
	return slices.DeleteFunc(installed, func(d engine.Document) bool { return fromFiles[engine.KeyOf(d.Object).Named()] })
}

// openWorld sets what policies may read: the cluster, or the manifests together
// with the objects that lay beside the policies, and those that values describe.
func (w *wiring) openWorld(ctx context.Context, o *EvaluateOptions, described []*unstructured.Unstructured) (meta.RESTMapper, error) {
	if w.client != nil {
		if len(described) > 0 {
			w.warnAt(w.Context.Values, "the Namespaces that it describes are not used: those of the cluster count")
		}
		o.World.Reader, o.World.Raw, o.World.Access = w.client, w.client, accessreview.New(w.client)
		return w.client.Mapper(), nil
	}
	objects, err := w.readObjects(ctx, w.Objects.Filenames)
	if err != nil {
		return nil, err
	}
	world, err := w.readObjects(ctx, w.Objects.World)
	if err != nil {
		return nil, err
	}
	world = append(described, world...)
	for _, d := range o.Documents {
		world = append(world, d.Object)
	}
	w.snapshot, err = snapshot.Load(objects, snapshot.Options{World: world, Namespace: w.namespace()})
	if err != nil {
		return nil, err
	}
	o.World.Reader, o.World.Raw = w.snapshot, w.snapshot
	return w.snapshot.Mapper(), nil
}

func (w *wiring) readObjects(ctx context.Context, paths []string) ([]*unstructured.Unstructured, error) {
	documents, err := w.reader.ReadAll(ctx, manifest.Input{Paths: paths, Recursive: w.Objects.Recursive})
	if err != nil {
		return nil, err
	}
	objects := make([]*unstructured.Unstructured, len(documents))
	for i, d := range documents {
		objects[i] = d.Object
	}
	return objects, nil
}

// namespace is the one that -n names, else the current one of the kubeconfig.
func (w *wiring) namespace() string {
	ns, _, err := w.Config.ToRawKubeConfigLoader().Namespace()
	if err != nil {
		return "default" // manifests need no kubeconfig; a cluster fails on it by itself
	}
	return ns
}

// scope follows kubectl get: the current namespace, that of -n, or all with -A.
// Objects without a namespace are left out only when -n asks for one. Manifests
// are all evaluated unless -n chooses among them.
func (w *wiring) scope(mapper meta.RESTMapper, args []string, request engine.Request) (engine.Scope, error) {
	scope := engine.Scope{ClusterScoped: !w.namespaceTyped() || w.Objects.AllNamespaces, Namespace: w.oneNamespace(), Request: request}
	var err error
	if scope.Labels, scope.Fields, err = w.Objects.selectors(); err != nil {
		return scope, err
	}
	scope.Only, err = resolve(mapper, args)
	return scope, err
}

func (w *wiring) namespaceTyped() bool {
	return w.Config.Namespace != nil && *w.Config.Namespace != ""
}

// oneNamespace is the namespace to which the run is narrowed, or none.
func (w *wiring) oneNamespace() string {
	if w.Objects.AllNamespaces || (w.Objects.Offline() && !w.namespaceTyped()) {
		return ""
	}
	return w.namespace()
}

func (w *wiring) source(ctx context.Context, scope engine.Scope) engine.Source {
	if w.snapshot != nil {
		return w.snapshot.Source(scope)
	}
	filters, err := w.client.ResourceFilters(ctx)
	if err != nil {
		filters = nil // Kyverno is not installed, or its settings are not for this user
	}
	return w.client.Source(scope, cluster.SourceOptions{Filters: filters, Warn: w.warn, Listed: w.progress.Listed})
}

func (w *wiring) warn(err error) {
	if !w.Quiet {
		fmt.Fprintf(w.streams.ErrOut, "warning: %v\n", err)
	}
}

func (w *wiring) warnAt(origin, text string) { w.warn(fmt.Errorf("%s: %s", origin, text)) }

// notices keeps the values of Secrets, and what could act on a terminal, out of
// what is told beside the results. Each message is written at once, so that none
// is cut where a value stands.
type notices struct {
	io.Writer
	masker *secret.Masker
}

// Write writes the text as it may be shown.
func (n notices) Write(p []byte) (int, error) {
	if _, err := io.WriteString(n.Writer, render.Harmless(n.masker.Text(string(p)))); err != nil {
		return 0, err
	}
	return len(p), nil
}

// renderOptions say how to print, and what the output says about the run.
func (w *wiring) renderOptions(out OutputFlags, request engine.Request) render.Options {
	o := out.options(w.stdout)
	o.Out, o.Masker = w.streams.Out, w.masker
	o.Context = render.Context{Version: Version(), Operation: string(request.Operation), Namespace: w.oneNamespace()}
	if w.client != nil {
		info := w.client.Info()
		o.Context.Context, o.Context.Server, o.Context.User = info.Context, info.Server, info.User
	}
	return o
}

// resolve reads TYPE and TYPE/NAME arguments; types may be joined by commas.
func resolve(mapper meta.RESTMapper, args []string) ([]engine.ObjectKey, error) {
	var keys []engine.ObjectKey
	for _, arg := range args {
		types, name, named := strings.Cut(arg, "/")
		if named && (name == "" || strings.Contains(name, "/") || strings.Contains(types, ",")) {
			return nil, fmt.Errorf("argument %q: use TYPE, TYPE,TYPE or TYPE/NAME", arg)
		}
		for _, t := range strings.Split(types, ",") {
			gk, err := kindOf(mapper, t)
			if err != nil {
				return nil, err
			}
			keys = append(keys, engine.ObjectKey{GroupKind: gk, Name: name})
		}
	}
	return keys, nil
}

// kindOf finds the kind that a user means by "deploy", "deployments.apps" or
// "deployments.v1.apps"; the first of several groups, as kubectl does.
func kindOf(mapper meta.RESTMapper, text string) (schema.GroupKind, error) {
	full, partial := schema.ParseResourceArg(strings.ToLower(text))
	if full != nil {
		if kinds, err := mapper.KindsFor(*full); err == nil && len(kinds) > 0 {
			return kinds[0].GroupKind(), nil
		}
	}
	kinds, err := mapper.KindsFor(partial.WithVersion(""))
	if meta.IsNoMatchError(err) || (err == nil && len(kinds) == 0) {
		return schema.GroupKind{}, fmt.Errorf("there is no resource type %q", text)
	}
	if err != nil {
		return schema.GroupKind{}, err
	}
	return kinds[0].GroupKind(), nil
}
