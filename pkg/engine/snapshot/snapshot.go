package snapshot

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"reflect"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
)

// Options tune Load.
type Options struct {
	// World holds objects that exist but are not evaluated themselves.
	World []engine.Document
	// Namespace is that of namespaced objects without one; empty stands for
	// "default".
	Namespace string
	// Cluster maps the kinds of a cluster that the objects are to lie over; nil for objects that stand for
	// themselves. Then no kinds are known but those of the cluster, of CustomResourceDefinitions and of the objects.
	Cluster meta.RESTMapper
	// Warn receives what is probably not meant, and the origin of the object that it is about;
	// nil drops it.
	Warn func(origin, text string)
}

// Snapshot is an immutable set of objects. It is safe for concurrent use.
type Snapshot struct {
	entries []*entry // in order of group, resource, namespace and name
	byName  map[engine.ObjectKey]*entry
	mapper  meta.RESTMapper
	names   engine.Kinds
	schemas *schemas
	custom  []definition
}

var (
	_ engine.Reader    = (*Snapshot)(nil)
	_ engine.RawReader = (*Snapshot)(nil)
)

type entry struct {
	key       engine.ObjectKey
	object    *unstructured.Unstructured
	origin    string // as in engine.Document
	mapping   *meta.RESTMapping
	evaluated bool
}

// Load makes a snapshot of the objects, which it never modifies. Of two objects
// of one name the later counts, with a warning if they differ, and an evaluated one
// before one of the world. It returns an error that joins one for each object without
// a type or a name.
func Load(objects []engine.Document, o Options) (*Snapshot, error) {
	documents := slices.Concat(o.World, objects)
	if err := validate(documents); err != nil {
		return nil, err
	}
	all := make([]*unstructured.Unstructured, len(documents))
	for i, d := range documents {
		all[i] = d.Object
	}
	definitions := definitionsIn(all)
	s := &Snapshot{
		byName:  map[engine.ObjectKey]*entry{},
		mapper:  newMapper(definitions, all, o.Cluster),
		schemas: newSchemas(definitions),
		custom:  definitions,
	}
	for i, u := range all {
		mapping, err := s.mapper.RESTMapping(u.GroupVersionKind().GroupKind(), u.GroupVersionKind().Version)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", cmp.Or(documents[i].Origin, engine.KeyOf(u).String()), err)
		}
		if mapping.Scope.Name() == meta.RESTScopeNameNamespace {
			u = inNamespace(u, cmp.Or(u.GetNamespace(), o.Namespace, metav1.NamespaceDefault))
		}
		e := &entry{key: engine.KeyOf(u), object: u, origin: documents[i].Origin, mapping: mapping, evaluated: i >= len(o.World)}
		if before := s.add(e); before != nil && o.Warn != nil && e.contradicts(before) {
			o.Warn(e.origin, fmt.Sprintf("%s was read before, at %s: the later one is used", e.key, before.origin))
		}
	}
	slices.SortStableFunc(s.entries, func(a, b *entry) int {
		x, y := a.mapping.Resource, b.mapping.Resource
		return cmp.Or(cmp.Compare(x.Group, y.Group), cmp.Compare(x.Resource, y.Resource),
			cmp.Compare(a.key.Namespace, b.key.Namespace), cmp.Compare(a.key.Name, b.key.Name))
	})
	s.names = engine.Kinds{Known: s.knownKinds(o.Cluster == nil), Whose: "neither Kubernetes nor the manifests have a"}
	return s, nil
}

func validate(documents []engine.Document) error {
	var problems []error
	for i, d := range documents {
		place := cmp.Or(d.Origin, fmt.Sprintf("object %d", i+1))
		switch u := d.Object; {
		case u.GetAPIVersion() == "" || u.GetKind() == "":
			problems = append(problems, fmt.Errorf("%s: %q: apiVersion or kind is missing", place, u.GetName()))
		case u.GetName() == "" && u.GetGenerateName() == "":
			problems = append(problems, fmt.Errorf("%s: %s: metadata.name is missing", place, u.GetKind()))
		}
	}
	return errors.Join(problems...)
}

// add stores an entry, and returns the one of the same name that it takes the place of; objects
// that the server is yet to name are all different.
func (s *Snapshot) add(e *entry) *entry {
	name := e.key.Named()
	if old := s.byName[name]; old != nil && name.Name != "" {
		before := *old
		*old = *e
		return &before
	}
	s.byName[name] = e
	s.entries = append(s.entries, e)
	return nil
}

// contradicts reports whether two manifests of one object differ. An object to evaluate may
// differ from one of the world, and what is read from what is made up.
func (e *entry) contradicts(before *entry) bool {
	return e.evaluated == before.evaluated && e.origin != "" && before.origin != "" && !reflect.DeepEqual(e.object.Object, before.object.Object)
}

// inNamespace returns the object in a namespace, copying only the path to it.
func inNamespace(u *unstructured.Unstructured, namespace string) *unstructured.Unstructured {
	if u.GetNamespace() == namespace {
		return u
	}
	content := shallow(u.Object)
	metadata, _ := content["metadata"].(map[string]any)
	metadata = shallow(metadata)
	metadata["namespace"] = namespace
	content["metadata"] = metadata
	return &unstructured.Unstructured{Object: content}
}

func shallow(m map[string]any) map[string]any {
	out := make(map[string]any, len(m)+1)
	for k, v := range m {
		out[k] = v
	}
	return out
}

// Documents returns the objects in order, each in its namespace.
func (s *Snapshot) Documents() []engine.Document {
	out := make([]engine.Document, len(s.entries))
	for i, e := range s.entries {
		out[i] = engine.Document{Object: e.object, Origin: e.origin}
	}
	return out
}

// Mapper maps the kinds of Kubernetes itself, or of the cluster, of the CustomResourceDefinitions
// among the objects, and of the objects.
func (s *Snapshot) Mapper() meta.RESTMapper { return s.mapper }

// CheckKind returns an *engine.UnknownKindError for a kind that Mapper does not map.
func (s *Snapshot) CheckKind(n engine.KindName) error { return s.names.Check(n) }

// Origin returns where an object was read, as in engine.Document; empty if that is not known.
func (s *Snapshot) Origin(key engine.ObjectKey) string {
	key.Subresource = ""
	if e := s.byName[key.Named()]; e != nil {
		return e.origin
	}
	return ""
}

// holds reports whether there is an object, whatever its version.
func (s *Snapshot) holds(key engine.ObjectKey) bool {
	key.Subresource = ""
	return s.byName[key.Named()] != nil
}

// Get finds an object by group, kind, namespace and name, in the version in
// which it was loaded. Of subresources there are the status, the scale, and of Pods
// resize and ephemeralcontainers.
func (s *Snapshot) Get(_ context.Context, key engine.ObjectKey) (*unstructured.Unstructured, error) {
	subresource := key.Subresource
	key.Subresource = ""
	if e := s.byName[key.Named()]; e != nil {
		if u, served := s.subresource(e, subresource); served {
			return u, nil
		}
	}
	resource := schema.GroupResource{Group: key.Group, Resource: strings.ToLower(key.Kind)}
	if mapping, err := s.mapper.RESTMapping(key.GroupKind); err == nil {
		resource = mapping.Resource.GroupResource()
	}
	return nil, apierrors.NewNotFound(resource, key.Name)
}

// List streams what a selection names in order of group, resource, namespace
// and name. A label selector that no server would accept is an error, and a field selector that
// cannot be answered is a *FieldError.
func (s *Snapshot) List(ctx context.Context, sel engine.Selection) iter.Seq2[*unstructured.Unstructured, error] {
	return func(yield func(*unstructured.Unstructured, error) bool) {
		if sel.Labels != nil {
			if _, err := metav1.LabelSelectorAsSelector(sel.Labels); err != nil {
				yield(nil, fmt.Errorf("list %s: %w", sel.Kind, err))
				return
			}
		}
		byField, err := fields.ParseSelector(sel.Fields)
		if err == nil {
			err = answerable(byField)
		}
		if err != nil {
			yield(nil, fmt.Errorf("list %s: %w", sel.Kind, err))
			return
		}
		for _, e := range s.entries {
			if err := ctx.Err(); err != nil {
				yield(nil, err)
				return
			}
			selected := sel.Matches(e.object) && sel.MatchesResource(e.mapping.Resource.Resource) && byField.Matches(e.fields())
			if selected && !yield(e.object, nil) {
				return
			}
		}
	}
}

// Schema returns how the server would merge objects of a kind.
func (s *Snapshot) Schema(_ context.Context, gvk schema.GroupVersionKind) (engine.Schema, error) {
	known, err := s.schemas.schema(gvk)
	if err != nil || known.Types != nil {
		return known, err
	}
	if _, err := s.mapper.RESTMapping(gvk.GroupKind(), gvk.Version); err != nil {
		return engine.Schema{}, nil
	}
	return s.schemas.openSchema(gvk)
}
