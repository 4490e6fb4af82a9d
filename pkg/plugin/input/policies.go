package input

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/wording"
)

// Policies reads policies from files, URLs, standard input and the cluster.
type Policies struct {
	// Paths are those of --policy: files, directories (with all directories below them), URLs, and "-" for
	// standard input.
	Paths []string
	// FromCluster lists the installed policies and their inputs; nil without --from-cluster.
	FromCluster func(context.Context) ([]engine.Document, []error)
	Reader      *Reader
	// Accepts returns the role of a kind for the dialects.
	Accepts func(schema.GroupKind) engine.Role
	// Warn is called for each document that is not used; Note for each that replaces an installed one, and for
	// files of a directory that are not manifests. Neither is nil.
	Warn, Note func(origin, text string)
}

// ErrNoPolicy is wrapped by the error of files, or of a cluster, without a policy.
var ErrNoPolicy = errors.New("no policy")

// ClusterError reports that the policies of the cluster are unknown: one unreadable kind is enough, since a
// policy of it may be installed.
type ClusterError struct{ Errs []error } // at least one, such as an *engine.UnreadableError

// Error names the unreadable kinds, and the reason for the first.
func (e *ClusterError) Error() string {
	var first *engine.UnreadableError
	if len(e.Errs) == 1 || !errors.As(e.Errs[0], &first) {
		return fmt.Sprintf("reading the policies of the cluster: %v", e.Errs[0])
	}
	var parts []string
	for _, err := range e.Errs {
		var part *engine.UnreadableError
		if errors.As(err, &part) {
			parts = append(parts, part.What)
		}
	}
	return fmt.Sprintf("reading the policies of the cluster: cannot read %s: %v", strings.Join(parts, ", "), first.Err)
}

// Unwrap returns the errors of the unreadable kinds.
func (e *ClusterError) Unwrap() []error { return e.Errs }

// Load reads the policies and their inputs: bindings, exceptions, configuration, parameters, Namespaces,
// ConfigMaps. They come in the order in which they were read, those of the cluster first. Of two with the
// same identity (group, kind, namespace, name) only the last one is returned, so that a file replaces an
// installed one. Other objects are left out with a warning.
//
// Broken has an *Error for each unreadable document. The error is a *ClusterError, wraps ErrNoPolicy if
// there is no policy, or joins the broken documents if there are no others.
func (s Policies) Load(ctx context.Context) (documents []engine.Document, broken []error, err error) {
	if len(s.Paths) == 0 && s.FromCluster == nil {
		return nil, nil, fmt.Errorf("%w: use -p FILE, DIRECTORY, URL or - for policies to evaluate, or --from-cluster for those that are installed", ErrNoPolicy)
	}
	var installed []engine.Document
	if s.FromCluster != nil {
		var unread []error
		if installed, unread = s.FromCluster(ctx); len(unread) > 0 {
			return nil, nil, &ClusterError{Errs: unread}
		}
	}
	read, broken := s.readPaths(ctx)
	if err := ctx.Err(); err != nil {
		return nil, nil, context.Cause(ctx)
	}
	read = s.latest(installed, s.related(read))
	switch {
	case len(broken) == 0 && !slices.ContainsFunc(read, func(d engine.Document) bool {
		return s.Accepts(d.Key.GroupKind) == engine.Policy
	}):
		return nil, nil, s.noneFound()
	case len(read) == 0:
		return nil, nil, errors.Join(broken...)
	}
	return read, broken, nil
}

// readPaths reads the documents of all paths. A document that is not a Kubernetes object, such as a values
// file next to a policy, is only a warning, like an object that is not a policy.
func (s Policies) readPaths(ctx context.Context) ([]engine.Document, []error) {
	var documents []engine.Document
	var errs []error
	empty := slices.Clone(s.Paths)
	leftOut := map[string][]string{}
	input := Files{Paths: s.Paths, Recursive: true, URLs: true, Lines: true, LeftOut: func(directory,
		name string,
	) {
		leftOut[directory] = append(leftOut[directory], name)
	}}
	for d, err := range s.Reader.Read(ctx, input) {
		var broken *Error
		empty = slices.DeleteFunc(empty, func(path string) bool {
			return errors.As(err, &broken) && broken.Path == path || strings.HasPrefix(d.Origin, path+":")
		})
		switch {
		case err == nil:
			documents = append(documents, d)
		case errors.Is(err, ErrNotObject) && errors.As(err, &broken):
			s.Warn(broken.Origin(), broken.Err.Error()+": ignored")
		default:
			errs = append(errs, err)
		}
	}
	for _, directory := range slices.Sorted(maps.Keys(leftOut)) {
		names := leftOut[directory]
		s.Note(directory, fmt.Sprintf("left out, without the extension .yaml, .yml or .json: %s (%s)", wording.Plural(len(names), "file"), engine.Few(names)))
	}
	for _, path := range empty {
		if info, err := os.Stat(path); err == nil && !info.IsDir() && len(documents) > 0 {
			s.Warn(path, "there is no object in it")
		}
	}
	return documents, errs
}

// related leaves out, with a warning, objects that are neither policies nor inputs of any policy.
func (s Policies) related(documents []engine.Document) []engine.Document {
	params := parameterKinds(documents)
	var out []engine.Document
	for _, d := range documents {
		kind := d.Key.GroupKind
		if s.Accepts(kind) == engine.Foreign && !slices.Contains(wellKnownInputs[kind.Group], kind.Kind) &&
			kind.Group != "rbac.authorization.k8s.io" && !params[kind] {
			s.Warn(d.Origin, describe(d)+" is not a policy: ignored"+meant(kind))
			continue
		}
		out = append(out, d)
	}
	return out
}

// latest joins the installed and the read documents and keeps the last of each identity.
func (s Policies) latest(installed, read []engine.Document) []engine.Document {
	all := slices.Concat(installed, read)
	last := map[engine.ObjectKey]int{}
	for i, d := range all {
		if d.Key.Name == "" {
			continue // an object without a name replaces no other
		}
		key := d.Key.Named()
		if before, twice := last[key]; twice {
			if before < len(installed) {
				s.Note(d.Origin, describe(d)+" is used instead of the one that is installed in the cluster")
			} else {
				s.Warn(d.Origin, fmt.Sprintf("%s was read before, at %s: the later one is used", describe(d), all[before].Origin))
			}
			all[before] = engine.Document{}
		}
		last[key] = i
	}
	return slices.DeleteFunc(all, func(d engine.Document) bool { return d.Object() == nil })
}

func (s Policies) noneFound() error {
	if len(s.Paths) == 0 {
		return fmt.Errorf("%w is installed in the cluster: use -p FILE for one that is not", ErrNoPolicy)
	}
	where := strings.Join(s.Paths, ", ")
	if s.FromCluster != nil {
		return fmt.Errorf("%w in %s or in the cluster", ErrNoPolicy, where)
	}
	return fmt.Errorf("%w in %s: use --from-cluster for those that are installed", ErrNoPolicy, where)
}

// describe returns "Deployment shop/web".
func describe(d engine.Document) string {
	name := cmp.Or(d.Key.Name, "without a name")
	if ns := d.Key.Namespace; ns != "" {
		name = ns + "/" + name
	}
	return d.Key.Kind + " " + name
}

// policyKinds has the groups of the kinds of policies, to recognize misspelt ones.
//
//nolint:gochecknoglobals // an immutable table
var policyKinds = map[string]string{
	"ClusterPolicy": "kyverno.io", "Policy": "kyverno.io",
	"MutatingPolicy": "policies.kyverno.io", "NamespacedMutatingPolicy": "policies.kyverno.io",
	"Assign": "mutations.gatekeeper.sh", "AssignMetadata": "mutations.gatekeeper.sh",
	"AssignImage": "mutations.gatekeeper.sh", "ModifySet": "mutations.gatekeeper.sh",
	"MutatingAdmissionPolicy":        "admissionregistration.k8s.io",
	"MutatingAdmissionPolicyBinding": "admissionregistration.k8s.io",
}

// meant returns a suggestion if a kind is a misspelt policy.
func meant(kind schema.GroupKind) string {
	name := engine.Nearest(kind.Kind, maps.Keys(policyKinds))
	group := policyKinds[name]
	if name == "" || engine.Nearest(kind.Group, slices.Values([]string{group})) == "" {
		return ""
	}
	return fmt.Sprintf("; did you mean %s of %s?", name, group)
}

// wellKnownInputs are the kinds that are commonly kept next to policies because policies read them, whatever
// the dialects of the run: they describe namespaces and users, hold data, define kinds, or are inputs of the
// engines.
//
//nolint:gochecknoglobals // an immutable table
var wellKnownInputs = map[string][]string{
	"":                             {"Namespace", "ConfigMap", "Secret", "ServiceAccount"},
	"apiextensions.k8s.io":         {"CustomResourceDefinition"},
	"admissionregistration.k8s.io": {"MutatingAdmissionPolicyBinding"},
	"kyverno.io":                   {"PolicyException", "GlobalContextEntry"},
	"policies.kyverno.io":          {"PolicyException"}, "config.gatekeeper.sh": {"Config"},
}

// parameterKinds returns the kinds that policies name as parameters (spec.paramKind).
func parameterKinds(documents []engine.Document) map[schema.GroupKind]bool {
	kinds := map[schema.GroupKind]bool{}
	for _, d := range documents {
		// A malformed paramKind is for the dialect to report.
		kind, _ := d.Field("spec", "paramKind", "kind").(string)
		version, _ := d.Field("spec", "paramKind", "apiVersion").(string)
		if gv, err := schema.ParseGroupVersion(version); err == nil && kind != "" {
			kinds[schema.GroupKind{Group: gv.Group, Kind: kind}] = true
		}
	}
	return kinds
}
