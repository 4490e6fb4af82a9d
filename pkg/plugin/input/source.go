package input

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/joined"
)

// Source says where policies are to be found.
type Source struct {
	// Paths are what the user typed for --policy: files, directories (with all
	// directories below them), URLs, and "-" for standard input.
	Paths []string
	// FromCluster lists the policies, and their inputs, that are installed in
	// the cluster; nil unless the user asked for them.
	FromCluster func(context.Context) ([]engine.Document, error)
	// Reader reads the paths.
	Reader *Reader
	// Accepts says what an object of a kind is to the dialects.
	Accepts func(schema.GroupKind) engine.Role
	// Warn takes what the user should know and can live with; never nil.
	Warn func(origin, text string)
}

// ErrNoPolicy says that there is nothing to evaluate.
var ErrNoPolicy = errors.New("no policy")

// ClusterError is why the policies of the cluster cannot be told: one kind that
// cannot be read is enough, since a policy of it may be installed.
type ClusterError struct{ Err error } // may join several, such as *engine.UnreadableError

// Error names what could not be read, and why the first of it could not.
func (e *ClusterError) Error() string {
	all := joined.Errors(e.Err)
	var first *engine.UnreadableError
	if len(all) == 1 || !errors.As(all[0], &first) {
		return fmt.Sprintf("reading the policies of the cluster: %v", all[0])
	}
	var parts []string
	for _, err := range all {
		var part *engine.UnreadableError
		if errors.As(err, &part) {
			parts = append(parts, part.What)
		}
	}
	return fmt.Sprintf("reading the policies of the cluster: cannot read %s: %v", strings.Join(parts, ", "), first.Err)
}

// Unwrap gives what could not be read.
func (e *ClusterError) Unwrap() error { return e.Err }

// Load reads the policies and the objects beside them that policies read:
// bindings, exceptions, configuration, parameters, Namespaces, ConfigMaps. They
// come in the order in which they were read, those of the cluster first. Of two
// with the same identity (group, kind, namespace, name) only the last one comes,
// so that a file replaces what is installed. Other objects are left out with a
// warning.
//
// The error joins a *manifest.Error for each document that could not be read, is a
// *ClusterError, or wraps ErrNoPolicy where no policy was found; what could be read comes beside
// it, and the caller decides whether to go on.
func (s Source) Load(ctx context.Context) ([]engine.Document, error) {
	if len(s.Paths) == 0 && s.FromCluster == nil {
		return nil, fmt.Errorf("%w: type -p FILE, DIRECTORY, URL or - for policies to evaluate, or --from-cluster for those that are installed", ErrNoPolicy)
	}
	var installed []engine.Document
	if s.FromCluster != nil {
		var err error
		if installed, err = s.FromCluster(ctx); err != nil {
			return nil, &ClusterError{Err: err}
		}
	}
	read, err := s.readPaths(ctx)
	if ctx.Err() != nil {
		return nil, err
	}
	read = s.latest(installed, s.related(read))
	if err == nil && !s.anyPolicy(read) {
		err = s.noneFound()
	}
	return read, err
}

// readPaths reads the documents of all paths. Text that is no Kubernetes object,
// such as a values file beside a policy, is as little an error as an object that
// is no policy.
func (s Source) readPaths(ctx context.Context) ([]engine.Document, error) {
	var documents []engine.Document
	var errs []error
	for d, err := range s.Reader.Read(ctx, Input{Paths: s.Paths, Recursive: true, URLs: true}) {
		var broken *Error
		switch {
		case err == nil:
			documents = append(documents, d)
		case errors.Is(err, ErrNotObject) && errors.As(err, &broken):
			s.Warn(broken.Origin(), broken.Err.Error()+": ignored")
		default:
			errs = append(errs, err)
		}
	}
	return documents, errors.Join(errs...)
}

// related leaves out, with a warning, what is neither a policy nor anything
// that a policy may read.
func (s Source) related(documents []engine.Document) []engine.Document {
	params := parameterKinds(documents)
	var out []engine.Document
	for _, d := range documents {
		kind := groupKind(d.Object)
		if s.Accepts(kind) == engine.Foreign && !wellKnownInput(kind) && !params[kind] {
			s.Warn(d.Origin, describe(d.Object)+" is not a policy: ignored")
			continue
		}
		out = append(out, d)
	}
	return out
}

// latest joins the installed and the read documents and keeps the last of each
// identity.
func (s Source) latest(installed, read []engine.Document) []engine.Document {
	all := append(installed[:len(installed):len(installed)], read...)
	last := map[engine.ObjectKey]int{}
	for i, d := range all {
		if name := d.Object.GetName(); name == "" {
			continue // an object without a name is nobody's successor
		}
		key := engine.KeyOf(d.Object).Named()
		if before, twice := last[key]; twice {
			s.warnReplaced(all[before], d, before < len(installed))
			all[before].Object = nil
		}
		last[key] = i
	}
	out := all[:0:0]
	for _, d := range all {
		if d.Object != nil {
			out = append(out, d)
		}
	}
	return out
}

func (s Source) warnReplaced(before, after engine.Document, installed bool) {
	if installed {
		s.Warn(after.Origin, describe(after.Object)+" is used instead of the one that is installed in the cluster")
		return
	}
	s.Warn(after.Origin, fmt.Sprintf("%s was read before, at %s: the later one is used", describe(after.Object), before.Origin))
}

func (s Source) anyPolicy(documents []engine.Document) bool {
	for _, d := range documents {
		if s.Accepts(groupKind(d.Object)) == engine.Policy {
			return true
		}
	}
	return false
}

func (s Source) noneFound() error {
	if len(s.Paths) == 0 {
		return fmt.Errorf("%w is installed in the cluster: type -p FILE to evaluate one that is not", ErrNoPolicy)
	}
	where := strings.Join(s.Paths, ", ")
	if s.FromCluster != nil {
		return fmt.Errorf("%w in %s or in the cluster", ErrNoPolicy, where)
	}
	return fmt.Errorf("%w in %s: type --from-cluster to evaluate those that are installed", ErrNoPolicy, where)
}

func groupKind(u *unstructured.Unstructured) schema.GroupKind {
	return u.GroupVersionKind().GroupKind()
}

// describe is "Deployment shop/web".
func describe(u *unstructured.Unstructured) string {
	name := u.GetName()
	if name == "" {
		name = "without a name"
	}
	if ns := u.GetNamespace(); ns != "" {
		name = ns + "/" + name
	}
	return u.GetKind() + " " + name
}
