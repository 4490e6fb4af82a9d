package variant

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	smd "sigs.k8s.io/structured-merge-diff/v6/schema"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/diff"
)

// kind caches facts about a kind.
type kind struct {
	gvk        schema.GroupVersionKind
	namespaced bool
	typ        diff.Type
	validator  engine.FieldValidator
	mapping    *meta.RESTMapping
	mutations  []mutation // the lowest rank first
	needs      sync.Map   // the required fields of structs, by type
}

func (g *Generator) kind(ctx context.Context, gvk schema.GroupVersionKind) *kind {
	if k, ok := g.kinds[gvk]; ok {
		return k
	}
	k := &kind{gvk: gvk, namespaced: true, typ: diff.TypeOf(ctx, g.o.Reader, gvk)}
	if s, err := g.o.Reader.Schema(ctx, gvk); err == nil {
		k.validator = s.Fields
	}
	if mapping, err := g.o.Mapper.RESTMapping(gvk.GroupKind(), gvk.Version); err == nil {
		k.mapping, k.namespaced = mapping, mapping.Scope.Name() == meta.RESTScopeNameNamespace
	}
	for _, f := range g.literals.fieldsOf(nil, k.typ, nil, false) {
		f.allowed = k.allowed(f.path)
		k.mutations = append(k.mutations, g.literals.mutations(f)...)
	}
	slices.SortStableFunc(k.mutations, func(a, b mutation) int { return cmp.Compare(a.rank, b.rank) })
	g.kinds[gvk] = k
	return k
}

// allowed returns the only valid values of a field; nil if it is not restricted.
func (k *kind) allowed(path []string) []any {
	if k.validator == nil {
		return nil
	}
	at, none := make(fieldpath.Path, len(path)), 0
	for i := range path {
		if path[i] == element {
			at[i].Index = &none
		} else {
			at[i].FieldName = &path[i]
		}
	}
	for _, found := range k.validator.Validate(at, "\x00") {
		if found.Allowed != nil {
			return found.Allowed
		}
	}
	return nil
}

// element stands for the elements of a list in a path.
const element = "[]"

// field is a field that policies may refer to.
type field struct {
	path    []string
	typ     diff.Type
	allowed []any // the only valid values; nil if not restricted
}

func (f *field) name() string { return f.path[len(f.path)-1] }

func (f *field) atom() smd.Atom { return atomOf(f.typ) }

func atomOf(t diff.Type) smd.Atom {
	atom, _ := t.Atom()
	return atom
}

func (f *field) entry(key string) *field {
	return &field{path: append(slices.Clone(f.path), key), typ: f.typ.Field(key)}
}

// Bounds of the search in a schema.
const (
	maxDepth  = 14
	maxFields = 400
)

//nolint:gochecknoglobals // immutable tables
var (
	// structural are fields that lead to others, and that policies need not name.
	structural = []string{"metadata", "spec", "template", "jobTemplate"}
	// ofMetadata are the relevant fields of metadata.
	ofMetadata = []string{
		labels, "annotations", "generateName", "ownerReferences", "finalizers",
		"resourceVersion", "uid", "creationTimestamp",
	}
	// neighbors maps a field to similar ones that policies easily forget.
	neighbors = map[string][]string{
		"initContainers": {"containers"}, "ephemeralContainers": {"containers"},
		"containers": {"initContainers"}, "protocol": {"port", "containerPort"},
	}
)

// fieldsOf adds the fields of a type that policies may refer to; named reports that a policy names a part of
// the path.
func (l *literals) fieldsOf(out []*field, t diff.Type, path []string, named bool) []*field {
	if len(path) > maxDepth || len(out) >= maxFields {
		return out
	}
	add := func(name string, t diff.Type, named bool) {
		f := &field{path: append(slices.Clone(path), name), typ: t}
		if named && name != element {
			out = append(out, f)
		}
		out = l.fieldsOf(out, t, f.path, named)
	}
	switch atom := atomOf(t); {
	case atom.List != nil:
		add(element, t.Element(), named)
	case atom.Map != nil:
		for _, f := range sortedFields(atom.Map) {
			leads := slices.Contains(structural, f.Name)
			if l.leads(path, f.Name) && (leads || l.nameField(f.Name)) {
				add(f.Name, t.Field(f.Name), named || !leads || l.words[f.Name])
			}
		}
	}
	return out
}

func (l *literals) leads(path []string, name string) bool {
	switch len(path) {
	case 0:
		return name != "apiVersion" && name != "kind"
	case 1:
		return path[0] != "metadata" || slices.Contains(ofMetadata, name)
	}
	return true
}

// nameField reports whether policies name the field or a similar one.
func (l *literals) nameField(name string) bool {
	return l.words[name] ||
		slices.ContainsFunc(neighbors[name], func(other string) bool { return l.words[other] })
}

// sortedFields sorts the fields of a struct by name: a schema has no order.
func sortedFields(m *smd.Map) []smd.StructField {
	return slices.SortedFunc(slices.Values(m.Fields),
		func(a, b smd.StructField) int { return strings.Compare(a.Name, b.Name) })
}
