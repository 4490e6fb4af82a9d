package snapshot

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/openapi"
)

// Options tune Load.
type Options struct {
	// World holds objects that exist but are not evaluated themselves.
	World []engine.Document
	// Namespace is the default namespace of namespaced objects; empty stands for "default".
	Namespace string
	// Cluster maps the kinds of the cluster under the objects; nil without a cluster. With it, only the kinds of
	// the cluster, of CustomResourceDefinitions and of the objects are known.
	Cluster meta.RESTMapper
	// AsWritten serves the objects as in their manifests, not as a server decodes them, with defaults.
	AsWritten bool
	// Warn receives probable mistakes, with the origin of their object; nil drops them.
	Warn func(origin, text string)
	// Twice receives the origins of a duplicate object to evaluate, of which the later is evaluated; nil drops
	// them. Warn receives duplicates that differ.
	Twice func(earlier, later string)
}

// Snapshot is an immutable set of objects. It is safe for concurrent use.
type Snapshot struct {
	texts   Dictionary
	entries []*entry                      // in order of group, resource, namespace and name
	ofKind  map[schema.GroupKind][]*entry // each in order of namespace and name
	mapper  meta.RESTMapper
	names   engine.Kinds
	schemas *schemas
	custom  []definition
	written bool // objects are served as they were written

	published []*metav1.APIResourceList
}

var (
	_ engine.Reader    = (*Snapshot)(nil)
	_ engine.RawReader = (*Snapshot)(nil)
)

// entry is one object. It is packed, its type and metadata separately, unless it is a Namespace, which is
// read with every object in it, or a CustomResourceDefinition.
type entry struct {
	key        engine.ObjectKey
	head, rest Value
	unpacked   *unstructured.Unstructured // nil if it is packed
	decoded    *unstructured.Unstructured // of an unpacked one
	origin     string                     // as in engine.Document
	mapping    *meta.RESTMapping
	evaluated  bool
}

// decoded returns the object of an entry as a server with its kind decodes it. It must not be modified.
func (s *Snapshot) decoded(e *entry) *unstructured.Unstructured {
	if e.decoded != nil {
		return e.decoded
	}
	return s.decode(e.object(&s.texts))
}

func (s *Snapshot) decode(u *unstructured.Unstructured) *unstructured.Unstructured {
	if s.written {
		return u
	}
	return s.schemas.form(u.GroupVersionKind()).Object(u)
}

// object returns the object of an entry as written. It must not be modified.
func (e *entry) object(texts *Dictionary) *unstructured.Unstructured {
	out := e.unpackedHead(texts)
	if e.unpacked == nil {
		rest, _ := texts.Unpack(e.rest).(map[string]any)
		maps.Copy(out.Object, rest)
	}
	return out
}

// unpackedHead returns an object with at least its type and metadata.
func (e *entry) unpackedHead(texts *Dictionary) *unstructured.Unstructured {
	if e.unpacked != nil {
		return e.unpacked
	}
	content, _ := texts.Unpack(e.head).(map[string]any)
	return &unstructured.Unstructured{Object: content}
}

// pack packs an object; false if it has values that are not JSON.
func (e *entry) pack(texts *Dictionary, u *unstructured.Unstructured) (ok bool) {
	head, rest := map[string]any{}, maps.Clone(u.Object)
	for _, name := range []string{"apiVersion", "kind", "metadata"} {
		if value, has := rest[name]; has {
			head[name] = value
			delete(rest, name)
		}
	}
	if e.head, ok = texts.Pack(head); ok {
		e.rest, ok = texts.Pack(rest)
	}
	return ok
}

// Load makes a snapshot of the objects and Options.World, as a Loader does.
func Load(objects []engine.Document, o Options) (*Snapshot, error) {
	var l Loader
	for _, d := range objects {
		l.Add(d)
	}
	return l.Load(o)
}

// Loader makes a snapshot of objects one by one, and keeps none of the given ones. The zero value is ready
// for use.
type Loader struct {
	objects, world []*entry
	texts          Dictionary
	problems       []error
}

// Add adds an object to evaluate.
func (l *Loader) Add(d engine.Document) { l.objects = append(l.objects, l.entry(d, true)) }

// AddWorld adds an object that exists, but is not evaluated.
func (l *Loader) AddWorld(d engine.Document) { l.world = append(l.world, l.entry(d, false)) }

// entry packs a document, and notes its errors.
func (l *Loader) entry(d engine.Document, evaluated bool) *entry {
	place := cmp.Or(d.Origin, fmt.Sprintf("object %d", len(l.objects)+len(l.world)+1))
	u := d.Object()
	switch {
	case u.GetAPIVersion() == "" || u.GetKind() == "":
		l.problems = append(l.problems, fmt.Errorf("%s: %q: apiVersion or kind is missing", place, u.GetName()))
	case u.GetName() == "" && u.GetGenerateName() == "":
		l.problems = append(l.problems, fmt.Errorf("%s: %s: metadata.name is missing", place, u.GetKind()))
	}
	e := &entry{origin: d.Origin, evaluated: evaluated}
	if kind := d.Key.Kind; kind == "Namespace" || kind == "CustomResourceDefinition" || !e.pack(&l.texts, u) {
		e.unpacked = u
	}
	e.key = engine.KeyOf(e.unpackedHead(&l.texts)) // with its own strings, not the document's
	return e
}

// Load makes the snapshot. Of two objects of one name the later counts, with a warning if they differ, and an
// evaluated one before one of the world. The error joins one for each object without a type or a name. The
// loader must not be used afterwards.
func (l *Loader) Load(o Options) (*Snapshot, error) {
	for _, d := range o.World {
		l.AddWorld(d)
	}
	if len(l.problems) > 0 {
		return nil, errors.Join(l.problems...)
	}
	all := slices.Concat(l.world, l.objects)
	definitions := definitionsIn(all)
	s := &Snapshot{
		texts:   l.texts,
		ofKind:  map[schema.GroupKind][]*entry{},
		schemas: newSchemas(definitions),
		custom:  definitions,
		written: o.AsWritten,

		published: publish(definitions, all, o.Cluster != nil),
		names:     engine.Kinds{Whose: "neither Kubernetes nor the manifests have a"},
	}
	s.mapper = newMapper(s.published, o.Cluster)
	for _, list := range s.published {
		s.names.Add(versionOf(list), list.APIResources)
	}
	mappings := map[schema.GroupVersionKind]*meta.RESTMapping{} // shared by the objects of a kind
	byName := map[engine.ObjectKey]*entry{}
	for _, e := range all {
		gvk := e.key.GroupVersionKind()
		if mappings[gvk] == nil {
			var err error
			if mappings[gvk], err = s.mapper.RESTMapping(e.key.GroupKind, e.key.Version); err != nil {
				return nil, fmt.Errorf("%s: %w", cmp.Or(e.origin, e.key.String()), err)
			}
		}
		e.mapping = mappings[gvk]
		if e.mapping.Scope.Name() == meta.RESTScopeNameNamespace && e.key.Namespace == "" {
			s.setNamespace(e, cmp.Or(o.Namespace, metav1.NamespaceDefault))
		}
		before := s.add(byName, e)
		if before != nil && o.Twice != nil && e.evaluated && before.evaluated {
			o.Twice(before.origin, e.origin)
		}
		if before != nil && o.Warn != nil && s.contradict(e, before) {
			o.Warn(e.origin, fmt.Sprintf("%s was read before, at %s: the later one is used", e.key, before.origin))
		}
	}
	slices.SortStableFunc(s.entries, func(a, b *entry) int {
		x, y := a.mapping.Resource, b.mapping.Resource
		return cmp.Or(cmp.Compare(x.Group, y.Group), cmp.Compare(x.Resource, y.Resource), a.compareName(b.key))
	})
	for _, e := range s.entries {
		if e.unpacked != nil {
			e.decoded = s.decode(e.unpacked)
		}
		s.ofKind[e.key.GroupKind] = append(s.ofKind[e.key.GroupKind], e)
	}
	for _, entries := range s.ofKind { // another version may have another resource
		slices.SortStableFunc(entries, func(a, b *entry) int { return a.compareName(b.key) })
	}
	return s, nil
}

// setNamespace sets the namespace of an object without one.
func (s *Snapshot) setNamespace(e *entry, namespace string) {
	content := maps.Clone(e.unpackedHead(&s.texts).Object)
	metadata, _ := content["metadata"].(map[string]any)
	if metadata = maps.Clone(metadata); metadata == nil {
		metadata = map[string]any{}
	}
	metadata["namespace"], content["metadata"], e.key.Namespace = namespace, metadata, namespace
	if e.unpacked != nil {
		e.unpacked = &unstructured.Unstructured{Object: content}
	} else {
		e.head, _ = s.texts.Pack(content)
	}
}

// add stores an entry, and returns the entry of the same name that it replaces; objects with a generated name
// are all different.
func (s *Snapshot) add(byName map[engine.ObjectKey]*entry, e *entry) *entry {
	name := e.key.Named()
	if old := byName[name]; old != nil && name.Name != "" {
		before := *old
		*old = *e
		return &before
	}
	byName[name] = e
	s.entries = append(s.entries, e)
	return nil
}

// compareName orders objects of a kind by namespace and name.
func (e *entry) compareName(key engine.ObjectKey) int {
	return cmp.Or(cmp.Compare(e.key.Namespace, key.Namespace), cmp.Compare(e.key.Name, key.Name))
}

// find returns the object of a group, kind, namespace and name, in any version; nil if there is none.
func (s *Snapshot) find(key engine.ObjectKey) *entry {
	ofKind := s.ofKind[key.GroupKind]
	if i, found := slices.BinarySearchFunc(ofKind, key, (*entry).compareName); found {
		return ofKind[i]
	}
	return nil
}

// contradict reports whether two manifests of one object differ. An object to evaluate may differ from one of
// the world, and a read one from a made-up one.
func (s *Snapshot) contradict(e, before *entry) bool {
	return e.evaluated == before.evaluated && e.origin != "" && before.origin != "" &&
		!reflect.DeepEqual(e.object(&s.texts).Object, before.object(&s.texts).Object)
}

// Documents returns the objects in order, each in its namespace.
func (s *Snapshot) Documents() []engine.Document {
	out := make([]engine.Document, len(s.entries))
	for i, e := range s.entries {
		out[i] = engine.NewDocument(e.object(&s.texts), e.origin)
	}
	return out
}

// Mapper maps the kinds of Kubernetes itself, or of the cluster, of the CustomResourceDefinitions among the
// objects, and of the objects.
func (s *Snapshot) Mapper() meta.RESTMapper { return s.mapper }

// CheckKind returns an *engine.UnknownKindError for a kind that Mapper does not map.
func (s *Snapshot) CheckKind(n engine.KindName) error { return s.names.Check(n) }

// Document returns an object as read; the zero Document if there is none.
func (s *Snapshot) Document(key engine.ObjectKey) engine.Document {
	if e := s.find(key); e != nil {
		return engine.NewDocument(e.object(&s.texts), e.origin)
	}
	return engine.Document{}
}

// holds reports whether there is an object, in any version.
func (s *Snapshot) holds(key engine.ObjectKey) bool {
	return s.find(key) != nil
}

// Get finds an object by group, kind, namespace and name, in the version in which it was loaded. Its
// subresources are the status, the scale, and for Pods resize and ephemeralcontainers.
func (s *Snapshot) Get(_ context.Context, key engine.ObjectKey) (*unstructured.Unstructured, error) {
	if e := s.find(key); e != nil {
		if u, served := s.subresource(e, key.Subresource); served {
			return u, nil
		}
	}
	resource := schema.GroupResource{Group: key.Group, Resource: strings.ToLower(key.Kind)}
	if mapping, err := s.mapper.RESTMapping(key.GroupKind); err == nil {
		resource = mapping.Resource.GroupResource()
	}
	return nil, apierrors.NewNotFound(resource, key.Name)
}

// List streams the objects of a selection in order of group, resource, namespace and name. A label selector
// that no server would accept is an error, and so is an unsupported field selector.
func (s *Snapshot) List(
	ctx context.Context, sel engine.Selection,
) iter.Seq2[*unstructured.Unstructured, error] {
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
			selected := sel.MatchesResource(e.mapping.Resource.Resource) && byField.Matches(e.fields()) &&
				sel.Matches(e.unpackedHead(&s.texts))
			if selected && !yield(s.decoded(e), nil) {
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

// schemas makes each schema on demand.
type schemas struct {
	custom map[schema.GroupVersionKind]func() (*openapi.Document, error)
	forms  map[schema.GroupVersionKind]*openapi.Type // of custom kinds
	open   sync.Map                                  // of unknown kinds, by schema.GroupVersionKind
}

func newSchemas(definitions []definition) *schemas {
	s := &schemas{
		custom: map[schema.GroupVersionKind]func() (*openapi.Document, error){},
		forms:  map[schema.GroupVersionKind]*openapi.Type{},
	}
	for _, d := range definitions {
		if d.schema != nil {
			s.forms[d.kind] = openapi.StoredTypeOf(d.schema)
			s.custom[d.kind] = sync.OnceValues(func() (*openapi.Document, error) {
				return openapi.FromCustomResource(d.kind, d.schema)
			})
		}
	}
	return s
}

func (s *schemas) schema(gvk schema.GroupVersionKind) (engine.Schema, error) {
	read := s.custom[gvk]
	if read == nil {
		read = func() (*openapi.Document, error) { return openapi.Builtin(gvk) }
	}
	document, err := read()
	if document == nil || err != nil {
		return engine.Schema{}, err
	}
	return document.Schema(gvk), nil
}

// form returns a server's form of the objects of a kind; nil if unknown.
func (s *schemas) form(gvk schema.GroupVersionKind) *openapi.Type {
	if custom := s.forms[gvk]; custom != nil {
		return custom
	}
	return openapi.StoredType(gvk)
}

// openSchema is the schema of a kind without a CustomResourceDefinition: its metadata is as in every object,
// and all else is as a server treats fields that a schema leaves open.
func (s *schemas) openSchema(gvk schema.GroupVersionKind) (engine.Schema, error) {
	if known, ok := s.open.Load(gvk); ok {
		return known.(engine.Schema), nil
	}
	document, err := openapi.FromCustomResource(gvk,
		map[string]any{"type": "object", "x-kubernetes-preserve-unknown-fields": true})
	if err != nil {
		return engine.Schema{}, err
	}
	out := document.Schema(gvk)
	s.open.Store(gvk, out)
	return out, nil
}
