package variant

import (
	"context"
	"encoding/json"
	"hash/fnv"
	"iter"
	"maps"
	"math/rand/v2"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/diff"
)

// DefaultLimit is how many variants are derived where the user does not say.
const DefaultLimit = 2000

// Options tune a Generator.
type Options struct {
	// Policies are those whose texts suggest what to vary.
	Policies []*unstructured.Unstructured
	// Matches are the objects that the rules match.
	Matches []engine.Selection
	// Reader knows the schemas, and Mapper the kinds.
	Reader engine.Reader
	Mapper meta.RESTMapper
	Seed   uint64
	Limit  int // of variants; 0 stands for DefaultLimit
}

// Generator derives variants.
type Generator struct {
	o          Options
	vocabulary *vocabulary
	namespaces []string
	kinds      map[schema.GroupVersionKind]*kind
}

// kind is what is known of a kind of objects.
type kind struct {
	gvk        schema.GroupVersionKind
	namespaced bool
	typ        diff.Type
	validator  engine.FieldValidator
	mapping    *meta.RESTMapping
	mutations  []mutation

	mu    sync.Mutex
	needs map[string][]string // the required fields of structs, by type
}

// New returns a generator.
func New(o Options) *Generator {
	if o.Limit <= 0 {
		o.Limit = DefaultLimit
	}
	g := &Generator{o: o, vocabulary: newVocabulary(o.Policies), kinds: map[schema.GroupVersionKind]*kind{}}
	for _, name := range []string{"namespaces", "namespace", "excludedNamespaces", "namespaceObject", "name"} {
		for _, value := range g.vocabulary.near[name] {
			text, _ := value.(string)
			text = strings.NewReplacer("*", "x", "?", "x").Replace(text)
			if len(validation.IsDNS1123Label(text)) == 0 && !slices.Contains(g.namespaces, text) && len(g.namespaces) < maxNear {
				g.namespaces = append(g.namespaces, text)
			}
		}
	}
	return g
}

// controllers are Pods, and what makes them: policies for Pods are applied to them as well.
var controllers = []schema.GroupVersionKind{ //nolint:gochecknoglobals // an immutable table
	{Version: "v1", Kind: "Pod"},
	{Group: "apps", Version: "v1", Kind: "Deployment"},
	{Group: "apps", Version: "v1", Kind: "StatefulSet"},
	{Group: "apps", Version: "v1", Kind: "DaemonSet"},
	{Group: "apps", Version: "v1", Kind: "ReplicaSet"},
	{Version: "v1", Kind: "ReplicationController"},
	{Group: "batch", Version: "v1", Kind: "Job"},
	{Group: "batch", Version: "v1", Kind: "CronJob"},
}

// common are the kinds that stand for all.
var common = []schema.GroupVersionKind{ //nolint:gochecknoglobals // an immutable table
	{Version: "v1", Kind: "ConfigMap"}, {Version: "v1", Kind: "Service"}, {Version: "v1", Kind: "Namespace"},
}

// Kinds are the kinds of objects that the rules match. A rule for Pods, or for all kinds, may be applied
// to their controllers.
func (g *Generator) Kinds() []schema.GroupVersionKind {
	var out []schema.GroupVersionKind
	add := func(gvk schema.GroupVersionKind) {
		if !slices.Contains(out, gvk) {
			out = append(out, gvk)
		}
	}
	for _, s := range g.o.Matches {
		if s.Subresource != "" && s.Subresource != "*" {
			continue
		}
		for _, gvk := range append(slices.Clone(controllers), common...) {
			if mapping, err := g.o.Mapper.RESTMapping(gvk.GroupKind(), gvk.Version); err == nil && g.selects(s, gvk, mapping) {
				add(gvk)
			}
		}
		if gvk, ok := g.kindOf(s); ok {
			add(gvk)
		}
	}
	if slices.ContainsFunc(out, func(gvk schema.GroupVersionKind) bool { return slices.Contains(controllers, gvk) }) {
		for _, gvk := range controllers {
			add(gvk)
		}
	}
	return out
}

func (g *Generator) selects(s engine.Selection, gvk schema.GroupVersionKind, mapping *meta.RESTMapping) bool {
	return s.MatchesKind(engine.ObjectKey{GroupKind: gvk.GroupKind()}) && s.MatchesResource(mapping.Resource.Resource)
}

// kindOf is the one kind that a selection names.
func (g *Generator) kindOf(s engine.Selection) (schema.GroupVersionKind, bool) {
	plain := regexp.MustCompile(`^[A-Za-z0-9.-]*$`)
	if !plain.MatchString(s.Group) {
		s.Group = ""
	}
	resource := s.Resource
	if resource == "" || !plain.MatchString(resource) {
		if !plain.MatchString(s.Kind) || s.Kind == "" {
			return schema.GroupVersionKind{}, false
		}
		if mapping, err := g.o.Mapper.RESTMapping(schema.GroupKind{Group: s.Group, Kind: s.Kind}); err == nil {
			return mapping.GroupVersionKind, true
		}
		resource = strings.ToLower(s.Kind)
	}
	kinds, _ := g.o.Mapper.KindsFor(schema.GroupVersionResource{Group: s.Group, Resource: resource}) // an error says that there are none
	for _, gvk := range kinds {
		if gvk.Group != "extensions" && (s.Resource != "" || gvk.Kind == s.Kind) { // a group that no server has any more
			return gvk, true
		}
	}
	return schema.GroupVersionKind{}, false
}

// kind returns what is known of a kind.
func (g *Generator) kind(ctx context.Context, gvk schema.GroupVersionKind) *kind {
	if k, ok := g.kinds[gvk]; ok {
		return k
	}
	k := &kind{gvk: gvk, namespaced: true, needs: map[string][]string{}, typ: diff.TypeOf(ctx, g.o.Reader, gvk)}
	if s, err := g.o.Reader.Schema(ctx, gvk); err == nil {
		k.validator = s.Fields
	}
	if mapping, err := g.o.Mapper.RESTMapping(gvk.GroupKind(), gvk.Version); err == nil {
		k.mapping, k.namespaced = mapping, mapping.Scope.Name() == meta.RESTScopeNameNamespace
	}
	sites := g.vocabulary.sites(k.typ)
	for i := range sites {
		k.mutations = append(k.mutations, g.vocabulary.mutations(&sites[i])...)
	}
	g.kinds[gvk] = k
	return k
}

// Variants yields the minimal objects of all kinds that the rules match, and then variants of these and of
// others, first with one difference each, then with several. There are no more of them than the limit,
// no two alike, and always the same for the same seed.
func (g *Generator) Variants(ctx context.Context, others []engine.Target) iter.Seq[engine.Target] {
	return func(yield func(engine.Target) bool) {
		s := &stream{generator: g, ctx: ctx, seen: map[uint64]bool{}, yield: yield, left: g.o.Limit}
		var bases []engine.Target
		for _, gvk := range g.Kinds() {
			if base, ok := g.Minimal(ctx, gvk); ok {
				bases = append(bases, base)
				bases = append(bases, g.selected(base)...)
			}
		}
		for _, t := range others {
			if !engine.IsSecret(t.Object) {
				bases = append(bases, t)
			}
		}
		for _, base := range bases {
			if !s.emit(base) {
				return
			}
		}
		s.singles(bases)
		s.combined(bases)
	}
}

// wildcards makes a name of a pattern.
var wildcards = strings.NewReplacer("*", "x", "?", "x") //nolint:gochecknoglobals // immutable

// maxSelected bounds the minimal objects of one kind.
const maxSelected = 8

// selected are minimal objects with the names, the namespaces and the labels that the rules select, if any.
func (g *Generator) selected(base engine.Target) []engine.Target {
	var out []engine.Target
	for _, s := range g.o.Matches {
		if s.Name+s.Namespace == "" && s.Labels == nil || s.Subresource != "" || !g.selects(s, base.Object.GroupVersionKind(), base.Mapping) {
			continue
		}
		object := base.Object.DeepCopy()
		if s.Name != "" {
			object.SetName(wildcards.Replace(s.Name))
		}
		if s.Namespace != "" && object.GetNamespace() != "" {
			object.SetNamespace(wildcards.Replace(s.Namespace))
		}
		if s.Labels != nil {
			labels := object.GetLabels()
			if labels == nil {
				labels = map[string]string{}
			}
			maps.Copy(labels, s.Labels.MatchLabels)
			object.SetLabels(labels)
		}
		t := base.With(object)
		t.Key = engine.KeyOf(object)
		if t.Namespace != nil {
			t.Namespace = engine.BareNamespace(object.GetNamespace())
		}
		known := slices.ContainsFunc(out, func(o engine.Target) bool { return reflect.DeepEqual(o.Object, object) })
		if !known && len(out) < maxSelected && !reflect.DeepEqual(base.Object, object) {
			out = append(out, t)
		}
	}
	return out
}

// stream yields variants.
type stream struct {
	generator *Generator
	ctx       context.Context // of one call
	seen      map[uint64]bool
	yield     func(engine.Target) bool
	left      int
	ended     bool
}

// emit yields an object, unless it was there before or is not valid, and reports whether to go on.
func (s *stream) emit(t engine.Target) bool {
	if s.ended || s.ctx.Err() != nil {
		return false
	}
	if k := s.generator.kind(s.ctx, t.Object.GroupVersionKind()); k.typ.EmptyIsAbsent && k.typ.Schema != nil {
		content, _ := k.stripped(t.Object.Object, k.typ.Ref).(map[string]any)
		t = t.With(&unstructured.Unstructured{Object: content})
	}
	sum := fnv.New64a()
	var labels map[string]string
	if t.Namespace != nil {
		labels = t.Namespace.GetLabels()
	}
	text, err := json.Marshal([]any{t.Object.Object, labels})
	if err != nil {
		return true
	}
	sum.Write(text)
	if s.seen[sum.Sum64()] {
		return true
	}
	s.seen[sum.Sum64()] = true
	if !s.generator.Valid(s.ctx, t.Object) {
		return true
	}
	s.left--
	if s.left < 0 || !s.yield(t) {
		s.ended = true
	}
	return !s.ended
}

// step is one difference: of the object, or of what is around it.
type step func(engine.Target) (engine.Target, bool)

// steps are all single differences of an object.
func (s *stream) steps(base engine.Target) []step {
	k := s.generator.kind(s.ctx, base.Object.GroupVersionKind())
	mutations := k.mutations
	if k.typ.Schema == nil || len(mutations) == 0 {
		sites := s.generator.vocabulary.sitesOf(base.Object.Object)
		for i := range sites {
			mutations = append(mutations, s.generator.vocabulary.mutations(&sites[i])...)
		}
	}
	var out []step
	for i := range mutations {
		m := &mutations[i]
		out = append(out, func(t engine.Target) (engine.Target, bool) {
			object := t.Object.DeepCopy()
			ok := m.apply(object.Object)
			return t.With(object), ok
		})
	}
	return append(out, s.generator.around(k)...)
}

// around are differences of the name, the namespace and its labels.
func (g *Generator) around(k *kind) []step {
	var out []step
	for _, value := range g.vocabulary.near["names"] {
		if name, ok := value.(string); ok {
			name = wildcards.Replace(name)
			out = append(out, func(t engine.Target) (engine.Target, bool) {
				object := t.Object.DeepCopy()
				object.SetName(name)
				t.Key.Name = name
				return t.With(object), len(validation.IsDNS1123Subdomain(name)) == 0
			})
		}
	}
	if !k.namespaced {
		for _, name := range g.namespaces {
			out = append(out, func(t engine.Target) (engine.Target, bool) {
				object := t.Object.DeepCopy()
				object.SetName(name)
				if labels := object.GetLabels(); k.gvk.Kind == "Namespace" && labels != nil {
					labels[corev1.LabelMetadataName] = name
					object.SetLabels(labels)
				}
				t.Key.Name = name
				return t.With(object), true
			})
		}
		return out
	}
	for _, name := range append(slices.Clone(g.namespaces), "default", "kube-system") {
		out = append(out, func(t engine.Target) (engine.Target, bool) {
			object := t.Object.DeepCopy()
			object.SetNamespace(name)
			t.Key.Namespace = name
			t.Namespace = engine.BareNamespace(name)
			return t.With(object), true
		})
	}
	for _, key := range g.vocabulary.keys {
		for _, value := range append(slices.Clone(g.vocabulary.labels[key]), "other") {
			if key == corev1.LabelMetadataName || len(validation.IsValidLabelValue(value)) > 0 {
				continue
			}
			out = append(out, func(t engine.Target) (engine.Target, bool) {
				namespace := t.Namespace
				if namespace == nil {
					namespace = engine.BareNamespace(t.Key.Namespace)
				}
				namespace = namespace.DeepCopy()
				labels := namespace.GetLabels()
				if labels == nil {
					labels = map[string]string{}
				}
				labels[key] = value
				namespace.SetLabels(labels)
				t.Namespace = namespace
				return t, true
			})
		}
	}
	return out
}

// singles yields the variants with one difference, those of all bases in turn, so that a small budget is
// spent on all of them.
func (s *stream) singles(bases []engine.Target) {
	steps := make([][]step, len(bases))
	most := 0
	for i, base := range bases {
		steps[i] = s.steps(base)
		most = max(most, len(steps[i]))
	}
	reserve := s.left / 3 // for combined differences
	for n := range most {
		for i, base := range bases {
			if n >= len(steps[i]) {
				continue
			}
			if s.left <= reserve {
				return
			}
			if t, ok := steps[i][n](base); ok && !s.emit(t) {
				return
			}
		}
	}
}

// combined yields variants with several differences, which the seed chooses.
func (s *stream) combined(bases []engine.Target) {
	if len(bases) == 0 {
		return
	}
	random := rand.New(rand.NewPCG(s.generator.o.Seed, 1)) //nolint:gosec // it has to be repeatable
	steps := make([][]step, len(bases))
	for i, base := range bases {
		steps[i] = s.steps(base)
	}
	for tries := 10 * s.generator.o.Limit; tries > 0; tries-- {
		i := random.IntN(len(bases))
		if len(steps[i]) == 0 {
			continue
		}
		t := bases[i]
		for range 2 + random.IntN(3) {
			if next, ok := steps[i][random.IntN(len(steps[i]))](t); ok {
				t = next
			}
		}
		if !s.emit(t) {
			return
		}
	}
}
