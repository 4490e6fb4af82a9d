package factory

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/dialects"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/evaluation"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/snapshot"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/workload"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/cluster"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/evaluate"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/flags"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/input"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/process"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/wording"
)

// Evaluation reads policies and manifests, and returns the options of an evaluation for the types and names
// in args.
func (f *Factory) Evaluation(ctx context.Context, args []string,
	request engine.Request,
) (*evaluate.Options, error) {
	o := f.Options(request)
	var err error
	if o.Documents, err = f.readPolicies(ctx, o, &f.Policies); err != nil {
		return nil, err
	}
	if err := f.addInputs(ctx, o, f.Policies.FromCluster); err != nil {
		return nil, err
	}
	return o, f.complete(ctx, o, args)
}

// Options returns the options of an evaluation that depend only on flags.
func (f *Factory) Options(request engine.Request) *evaluate.Options {
	o := &evaluate.Options{
		Policies: evaluate.Policies{Dialects: dialects.All()},
		Options:  evaluation.Options{Request: request, Expand: f.Expand},
		ErrOut:   f.Streams.ErrOut, Quiet: f.Quiet, Progress: f.progress,
		World: &engine.World{Now: time.Now(), Seed: rand.Uint64(), Memo: &engine.Memo{}},
	}
	o.Rules, o.Strict, o.Annotate, o.EngineView = f.Policies.Rules, f.Policies.Strict, f.Annotate, f.EngineView
	o.AssumeBinding, o.UserNamed = f.Policies.AssumeBinding, !request.User.Empty()
	if f.Expand {
		o.Dialects = dialects.Expanding()
	}
	if f.Context.AllowHTTP {
		o.World.Remote = &ServiceClient{}
	}
	if f.Context.AllowRegistry {
		o.World.Registry = &RegistryClient{UserAgent: process.UserAgent()}
	}
	return o
}

// complete adds the world of the policies and the objects to options with policies.
func (f *Factory) complete(ctx context.Context, o *evaluate.Options, args []string) error {
	values, err := loadValues(ctx, f.Context.Values, f.reader)
	if err != nil {
		return err
	}
	var described []*unstructured.Unstructured // objects that values describe
	for _, dialect := range o.Dialects {
		if supplier, ok := dialect.(engine.Supplier); ok {
			for _, d := range values {
				described = append(described, supplier.Supplied(d)...)
			}
		}
	}
	mapper, err := f.openWorld(ctx, o, described)
	if err != nil {
		return err
	}
	o.Documents = append(o.Documents, values...)
	scope, err := f.scope(mapper, args, o.Request)
	if err == nil {
		err = f.checkNamespaces(ctx, mapper, scope)
	} else if f.Client != nil {
		if _, failed := f.Client.Served(ctx); failed != nil {
			err = failed // the type may be there
		}
	}
	if err != nil {
		return err
	}
	if err := checkExpand(o, scope); err != nil {
		return err
	}
	o.World.Mapper = mapper
	f.filtered(ctx, o, scope)
	f.choose(o, scope)
	o.MaxObjects = f.Canary.MaxObjects
	o.Unread = f.unread
	return nil
}

// checkExpand returns an error for types without a workload.
func checkExpand(o *evaluate.Options, scope engine.Scope) error {
	if !o.Expand || len(scope.Only) == 0 ||
		slices.ContainsFunc(scope.Only, func(k engine.ObjectKey) bool { return workload.Is(k.GroupKind) }) {
		return nil
	}
	return errors.New("--expand shows the Pods of workloads, but no workloads are named: name them, such as deployments")
}

// addInputs adds the objects of --world to the documents of a live run and, unless they are read already,
// the installed inputs. A file replaces an installed input.
func (f *Factory) addInputs(ctx context.Context, o *evaluate.Options, installed bool) error {
	if f.Client == nil {
		return nil
	}
	given := map[engine.ObjectKey]bool{}
	err := f.readObjects(ctx, input.Files{Paths: f.Objects.World, Recursive: f.Objects.Recursive},
		func(d engine.Document) {
			if engine.RoleOf(d.Key.GroupKind, o.Dialects) == engine.Policy {
				f.warnAt(d.Origin, "left out: it is a policy; use -p for policies, and --world for objects that policies read")
				return
			}
			given[d.Key.Named()] = true
			o.Documents = append(o.Documents, d)
		})
	if err != nil {
		return err
	}
	if !installed {
		o.Documents = append(f.installedInputs(ctx, o), o.Documents...)
	}
	o.Documents = slices.DeleteFunc(o.Documents, func(d engine.Document) bool {
		return isInstalled(d) && given[d.Key.Named()]
	})
	return nil
}

// readPolicies reads the policies that flags name, and reports unreadable ones.
func (f *Factory) readPolicies(ctx context.Context, o *evaluate.Options,
	named *flags.Policies,
) ([]engine.Document, error) {
	documents, broken, err := loadPolicies(ctx, named, f.Client,
		input.Policies{Reader: f.reader, Accepts: besidePolicies(o.Dialects), Warn: f.warnAt, Note: f.note})
	if err != nil {
		return nil, err
	}
	for _, problem := range broken {
		fmt.Fprintf(f.Streams.ErrOut, "error: %v\n", problem)
	}
	o.Unreadable = append(o.Unreadable, broken...)
	return documents, nil
}

// installedInputs returns the inputs of the cluster's engines, such as exceptions and excluded namespaces,
// which apply to policies from files too. What cannot be read is reported; see Factory.leave.
func (f *Factory) installedInputs(ctx context.Context, o *evaluate.Options) []engine.Document {
	fromFiles := map[engine.ObjectKey]bool{}
	for _, d := range o.Documents {
		fromFiles[d.Key.Named()] = true
	}
	installed, unread := f.Client.PolicyDocuments(ctx, inputs(&o.Policies))
	for _, problem := range unread {
		var part *engine.UnreadableError
		if errors.As(problem, &part) { // reading objects reports any other error
			f.leave(part)
		}
	}
	return slices.DeleteFunc(installed, func(d engine.Document) bool { return fromFiles[d.Key.Named()] })
}

// inputs returns a function for the role of a kind that the languages in use read besides policies.
func inputs(o *evaluate.Policies) func(schema.GroupKind) engine.Role {
	return func(gk schema.GroupKind) engine.Role {
		for _, d := range o.Dialects {
			if d.Accepts(gk) == engine.Input && len(o.Of(d)) > 0 && besidePolicies(o.Dialects)(gk) == engine.Input {
				return engine.Input
			}
		}
		return engine.Foreign
	}
}

// openCluster sets the world of policies: the cluster, overlaid by the documents of files that are not
// policies, which a run does not change.
func (f *Factory) openCluster(ctx context.Context, o *evaluate.Options) error {
	o.World.Reader, o.World.Raw, o.World.Access, o.World.Mapper = f.Client.Reader(), f.Client,
		cluster.NewAuthorizer(f.Client), f.Client.Mapper()
	o.CheckKind = checkKind(ctx, &f.Policies, nil, f.Client, o.Documents)
	role := besidePolicies(o.Dialects)
	var over, documents []engine.Document
	for _, d := range o.Documents {
		gk := d.Key.GroupKind
		switch is := engine.RoleOf(gk, o.Dialects); {
		case d.Key.IsSecret():
			f.note(d.Origin, "Secret "+d.Key.Name+" is not used: policies read the Secrets of the cluster")
			continue
		case isInstalled(d), is == engine.Policy, is != role(gk):
			documents = append(documents, d)
		case is == engine.Input:
			documents, over = append(documents, d), append(over, d)
		default:
			over = append(over, d)
		}
	}
	o.Documents = documents
	if len(over) == 0 {
		return nil
	}
	s, err := snapshot.Load(nil,
		snapshot.Options{World: over, Namespace: f.namespace(), Cluster: o.World.Mapper, Warn: f.warnAt})
	if err != nil {
		return err
	}
	o.Overlay = map[string]int{}
	noted := map[string]int{} // without inputs such as bindings
	for _, d := range s.Documents() {
		o.Overlay[d.Key.Kind]++
		switch engine.RoleOf(d.Key.GroupKind, o.Dialects) {
		case engine.Foreign:
			o.Documents = append(o.Documents, d)
			noted[d.Key.Kind]++
		case engine.Policy, engine.Input:
		}
	}
	if !f.Quiet && len(noted) > 0 {
		var counts []string
		for _, kind := range slices.Sorted(maps.Keys(noted)) {
			counts = append(counts, wording.Plural(noted[kind], kind))
		}
		fmt.Fprintf(f.Streams.ErrOut, "note: policies read these objects of files as if they were in the cluster; they are not written: %s\n", strings.Join(counts, ", "))
	}
	f.overlay = s.Over(f.Client.Reader())
	o.World.Reader, o.World.Raw, o.World.Existing, o.World.Mapper = f.overlay, f.overlay,
		f.overlay.Existing(), s.Mapper()
	o.CheckKind = checkKind(ctx, &f.Policies, s, f.Client, o.Documents)
	return nil
}

// openWorld sets the world of policies: the cluster, or the manifests with the objects in policy files and
// the described ones.
func (f *Factory) openWorld(ctx context.Context, o *evaluate.Options,
	described []*unstructured.Unstructured,
) (meta.RESTMapper, error) {
	if f.Client != nil {
		if len(described) > 0 {
			f.warnAt(f.Context.Values, "its Namespaces are not used: policies read those of the cluster")
		}
		err := f.openCluster(ctx, o)
		return o.World.Mapper, err
	}
	process.SaveTime()
	var loader snapshot.Loader
	for _, d := range engine.Documents(described...) {
		loader.AddWorld(d)
	}
	role := inputs(&o.Policies)
	var among, amongWorld []engine.Document // inputs
	keep := func(in *[]engine.Document, d engine.Document) {
		if gk := d.Key.GroupKind; gk.Group != "" && role(gk) != engine.Foreign {
			*in = append(*in, d)
		}
	}
	files := input.Files{
		Paths: f.Objects.Filenames, Kustomize: f.Objects.Kustomize,
		Recursive: f.Objects.Recursive,
	}
	err := f.readObjects(ctx, files, func(d engine.Document) { loader.Add(d); keep(&among, d) })
	if err != nil {
		return nil, err
	}
	files = input.Files{Paths: f.Objects.World, Recursive: f.Objects.Recursive}
	err = f.readObjects(ctx, files, func(d engine.Document) { loader.AddWorld(d); keep(&amongWorld, d) })
	if err != nil {
		return nil, err
	}
	for _, d := range o.Documents {
		if engine.RoleOf(d.Key.GroupKind, o.Dialects) != engine.Policy { // not an object of the cluster yet
			loader.AddWorld(d)
		}
	}
	o.Documents = slices.Concat(amongWorld, among, o.Documents)
	if f.snapshot, err = loader.Load(snapshot.Options{
		Namespace: f.namespace(), Warn: f.warnAt, Twice: f.Twice,
	}); err != nil {
		return nil, err
	}
	o.World.Reader, o.World.Raw, o.World.Document = f.snapshot, f.snapshot, f.snapshot.Document
	o.CheckKind = checkKind(ctx, &f.Policies, f.snapshot, nil, o.Documents)
	return f.snapshot.Mapper(), nil
}

// readObjects adds the objects of manifests, except files of kustomize. It is an error if there are no
// objects: probably a command before the pipe failed.
func (f *Factory) readObjects(ctx context.Context, from input.Files, add func(engine.Document)) error {
	var errs []error
	found := false
	for d, err := range f.reader.Read(ctx, from) {
		switch {
		case err != nil:
			errs = append(errs, err)
		case d.Key.GroupVersionKind().Group == input.KustomizeGroup:
			f.warnAt(d.Origin, "left out: build the directory of a kustomization with -k")
		default:
			found = true
			add(d)
		}
	}
	named := slices.DeleteFunc(append(slices.Clone(from.Paths), from.Kustomize), func(path string) bool {
		return path == ""
	})
	if len(errs) == 0 && !found && len(named) > 0 {
		if i := slices.Index(named, "-"); i >= 0 {
			named[i] = "standard input"
		}
		return fmt.Errorf("there is no object in %s", strings.Join(named, ", "))
	}
	return errors.Join(errs...)
}

// The content of the file of --values.
const (
	valuesGroup   = "cli.kyverno.io"
	valuesVersion = valuesGroup + "/v1alpha1"
	valuesKind    = "Values"
)

// loadValues reads the file of --values.
func loadValues(ctx context.Context, path string, r *input.Reader) ([]engine.Document, error) {
	if path == "" {
		return nil, nil
	}
	documents, err := r.ReadAll(ctx, input.Files{
		Paths: []string{path}, APIVersion: valuesVersion, Kind: valuesKind,
	})
	if err != nil {
		return nil, fmt.Errorf("--values: %w", err)
	}
	for i, d := range documents {
		if d.Key.Kind == "Value" { // Kyverno's command reads either
			d.Object().SetKind(valuesKind)
			d = engine.NewDocument(d.Object(), d.Origin)
			documents[i] = d
		}
		if gvk := d.Key.GroupVersionKind(); gvk.Kind != valuesKind || gvk.GroupVersion().String() != valuesVersion {
			return nil, fmt.Errorf("--values: %s: %s of %s is not %s of %s", d.Origin, gvk.Kind, gvk.GroupVersion(),
				valuesKind, valuesVersion)
		}
	}
	if len(documents) == 0 {
		return nil, errors.New("--values: " + path + " is empty")
	}
	return documents, nil
}

// besidePolicies returns a function for the role of a kind in policy files. Values are only read with
// --values: a file for tests must not change the result.
func besidePolicies(all []engine.Dialect) func(schema.GroupKind) engine.Role {
	return func(gk schema.GroupKind) engine.Role {
		if gk.Kind == valuesKind && gk.Group == valuesGroup {
			return engine.Foreign
		}
		return engine.RoleOf(gk, all)
	}
}

// asked also streams the objects that the user named and no policy selects: explain says why not.
type asked struct {
	engine.Source
	selections []engine.Selection
}

// Pages implements engine.Source.
func (s asked) Pages(ctx context.Context, selections []engine.Selection) iter.Seq2[engine.Page, error] {
	return s.Source.Pages(ctx, slices.Concat(selections, s.selections))
}

// Explain makes a run explain the objects that it shows and those in args, whatever the policies select; or
// all objects of its source.
func (f *Factory) Explain(o *evaluate.Options, args []string, all bool) error {
	if o.Reasons = true; all {
		o.Objects = asked{o.Objects, []engine.Selection{{Group: "*", Kind: "*"}}}
		return nil
	}
	keys, err := Resolve(o.World.Mapper, args)
	if err != nil || len(keys) == 0 {
		return err
	}
	var named []engine.Selection
	for _, k := range keys {
		named = append(named, o.Scope.Narrow(engine.Selection{Group: k.Group, Kind: k.Kind, Name: k.Name},
			o.World.Mapper)...)
	}
	o.Objects, o.Triggers = asked{o.Objects, named}, asked{o.Triggers, named}
	return nil
}

// NoObject returns the error of a run that found no object. It names the searched namespaces.
func (f *Factory) NoObject() error {
	if f.Objects.AllNamespaces || f.Objects.Offline() {
		return errors.New("there is no such object")
	}
	return fmt.Errorf("there is no such object in %s; use -n for another namespace, or -A for all", wording.Namespaces(f.Namespaces()))
}

// Comparison is Evaluation for two sides with the policies that flags name. The options are for both. Inputs
// of policies, such as exceptions, belong to the side that they were read for; those of the cluster and
// among the objects to both.
func (f *Factory) Comparison(ctx context.Context, args []string, request engine.Request,
	named [2]flags.Policies,
) (*evaluate.Options, [2]evaluate.Policies, error) {
	var sides [2]evaluate.Policies
	o := f.Options(request)
	o.Annotate = false // the annotation names the policy
	of := map[*unstructured.Unstructured]int{}
	for side := range named {
		documents, err := f.readPolicies(ctx, o, &named[side])
		if err != nil {
			return nil, sides, err
		}
		for _, d := range documents {
			if d.Origin != cluster.Origin || engine.RoleOf(d.Key.GroupKind, o.Dialects) == engine.Policy {
				of[d.Object()] = side
			}
		}
		o.Documents = append(o.Documents, documents...)
	}
	if err := f.addInputs(ctx, o, named[0].FromCluster || named[1].FromCluster); err != nil {
		return nil, sides, err
	}
	if err := f.complete(ctx, o, args); err != nil {
		return nil, sides, err
	}
	for side := range sides {
		sides[side] = o.Policies
		sides[side].Documents = slices.DeleteFunc(slices.Clone(o.Documents), func(d engine.Document) bool {
			owner, owned := of[d.Object()]
			return owned && owner != side
		})
	}
	return o, sides, nil
}
