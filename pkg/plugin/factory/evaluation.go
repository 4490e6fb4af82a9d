package factory

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/dialects"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/snapshot"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/cluster"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/input"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/preview"
)

// Evaluation reads policies and manifests, and returns the options of an evaluation. Args are
// the types and names that the user typed.
func (w *Factory) Evaluation(ctx context.Context, args []string, request engine.Request) (*preview.Options, error) {
	o := &preview.Options{
		Policies: preview.Policies{
			Dialects: dialects.All(),
			Rules:    engine.RuleFilter{Only: w.Policies.Only, Skip: w.Policies.Skip},
		},
		Request: request, ErrOut: w.Streams.ErrOut, Quiet: w.Quiet, Progress: w.progress,
		World: &engine.World{Now: time.Now(), Seed: rand.Uint64(), Limits: engine.DefaultLimits(), Memo: &engine.Memo{}},
	}
	grant(&w.Context, o.World)
	if err := w.loadPolicies(ctx, o); err != nil {
		return nil, err
	}
	values, err := loadValues(ctx, w.Context.Values, w.reader)
	if err != nil {
		return nil, err
	}
	mapper, err := w.openWorld(ctx, o, supplied(o.Dialects, values))
	if err != nil {
		return nil, err
	}
	o.Documents = append(o.Documents, values...)
	scope, err := w.scope(mapper, args, request)
	if err == nil {
		err = w.checkNamespace(ctx, mapper, scope)
	}
	if err != nil {
		return nil, err
	}
	o.World.Mapper = mapper
	o.Objects = w.source(ctx, scope)
	w.unread.count(o)
	w.learn(o)
	return o, nil
}

// learn makes the masker learn the Secrets that a run reads, and what policies compute from
// them.
func (w *Factory) learn(o *preview.Options) {
	o.World.Secrets = w.Secrets
	o.World.Reader = w.Secrets.Reader(o.World.Reader)
	o.World.Raw = w.Secrets.RawReader(o.World.Raw)
	o.Objects = w.Secrets.Source(o.Objects)
}

func (w *Factory) loadPolicies(ctx context.Context, o *preview.Options) error {
	accepts := besidePolicies(o.Dialects)
	source := input.Policies{Paths: w.Policies.Paths, Reader: w.reader, Accepts: accepts, Warn: w.warnAt}
	if w.Policies.FromCluster {
		source.FromCluster = func(ctx context.Context) ([]engine.Document, []error) {
			return w.Client.PolicyDocuments(ctx, accepts)
		}
	}
	documents, broken, err := source.Load(ctx)
	if err != nil {
		return err
	}
	for _, problem := range broken {
		fmt.Fprintf(w.Streams.ErrOut, "error: %v\n", problem)
	}
	o.Documents, o.Unreadable = documents, broken
	if w.Client != nil && !w.Policies.FromCluster {
		o.Documents = append(w.installedInputs(ctx, o), documents...)
	}
	return nil
}

// installedInputs returns what the cluster's engines use besides policies, such as exceptions
// and excluded namespaces: they apply to policies from files too. What cannot be read is
// reported; see Factory.leave.
func (w *Factory) installedInputs(ctx context.Context, o *preview.Options) []engine.Document {
	fromFiles := map[engine.ObjectKey]bool{}
	for _, d := range o.Documents {
		fromFiles[engine.KeyOf(d.Object).Named()] = true
	}
	role := func(gk schema.GroupKind) engine.Role {
		for _, d := range o.Dialects {
			if d.Accepts(gk) == engine.Input && len(o.Of(d)) > 0 {
				return engine.Input
			}
		}
		return engine.Foreign
	}
	installed, unread := w.Client.PolicyDocuments(ctx, role)
	for _, problem := range unread {
		var part *engine.UnreadableError
		if errors.As(problem, &part) { // anything else ends the run when objects are read
			w.leave(part)
		}
	}
	return slices.DeleteFunc(installed, func(d engine.Document) bool { return fromFiles[engine.KeyOf(d.Object).Named()] })
}

// openWorld sets what policies may read: the cluster, or the manifests together with the
// objects in the policy files, and those that values describe.
func (w *Factory) openWorld(ctx context.Context, o *preview.Options, described []*unstructured.Unstructured) (meta.RESTMapper, error) {
	if w.Client != nil {
		if len(described) > 0 {
			w.warnAt(w.Context.Values, "the Namespaces that it describes are not used: those of the cluster are")
		}
		o.World.Reader, o.World.Raw, o.World.Access = w.Client, w.Client, cluster.NewAuthorizer(w.Client)
		return w.Client.Mapper(), nil
	}
	objects, err := w.readObjects(ctx, input.Files{Paths: w.Objects.Filenames, Kustomize: w.Objects.Kustomize, Recursive: w.Objects.Recursive})
	if err != nil {
		return nil, err
	}
	world, err := w.readObjects(ctx, input.Files{Paths: w.Objects.World, Recursive: w.Objects.Recursive})
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

// readObjects reads manifests. An object that a server would not take is an error that names its
// place; what kustomize reads is no object of a cluster.
func (w *Factory) readObjects(ctx context.Context, from input.Files) ([]*unstructured.Unstructured, error) {
	documents, err := w.reader.ReadAll(ctx, from)
	if err != nil {
		return nil, err
	}
	var objects []*unstructured.Unstructured
	var nameless []error
	for _, d := range documents {
		switch u := d.Object; {
		case u.GroupVersionKind().Group == input.KustomizeGroup:
			w.warnAt(d.Origin, "left out: build the directory of a kustomization with -k")
		case u.GetName() == "" && u.GetGenerateName() == "":
			nameless = append(nameless, fmt.Errorf("%s: %s: metadata.name is missing", d.Origin, u.GetKind()))
		default:
			objects = append(objects, u)
		}
	}
	return objects, errors.Join(nameless...)
}
