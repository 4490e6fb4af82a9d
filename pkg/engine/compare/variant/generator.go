package variant

import (
	"cmp"
	"context"
	"encoding/json"
	"hash/fnv"
	"iter"
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
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

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
	// Named says that there are only requests for objects that have a name: those that are not CREATE.
	Named bool
	// Try evaluates the rules on a variant. Nil knows nothing of it.
	Try func(context.Context, Variant) Reaction
}

// Reaction is what is known of rules that were evaluated on a variant.
type Reaction struct {
	// Asked are the objects that they ask for: their targets, and what they read.
	Asked []engine.Selection
	// Did is equal where they did the same; empty where that is not known, or not to be told.
	Did string
}

// Variant is an object that is not there, but could be.
type Variant struct {
	engine.Target
	// Beside are other objects that are there with it, and not without it.
	Beside []*unstructured.Unstructured
}

// with returns the variant with another state of its object.
func (v Variant) with(object *unstructured.Unstructured) Variant {
	v.Object = object
	return v
}

// Generator derives variants.
type Generator struct {
	o          Options
	vocabulary *vocabulary
	namespaces []string
	kinds      map[schema.GroupVersionKind]*kind
	did        map[string]bool // what rules have done so far
	learned    []Variant       // those on which they did something else, to be varied further
	further    int             // how many of these there were
	untried    int
}

// Untried counts the differences of one field that the limit had no place for, when the variants have ended.
func (g *Generator) Untried() int { return g.untried }

// Learn tells what the rules did on a variant. One on which they do what they did on none before is varied further: this is how
// variants meet several conditions.
func (g *Generator) Learn(v Variant, did string) {
	if did != "" && !g.did[did] && g.further < maxLearned {
		g.did[did] = true
		g.further++
		g.learned = append(g.learned, v)
	}
}

// maxLearned bounds the variants that are varied further.
const maxLearned = 100

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
	g := &Generator{o: o, vocabulary: newVocabulary(o.Policies), kinds: map[schema.GroupVersionKind]*kind{}, did: map[string]bool{}}
	var exact, almost []string
	for _, name := range []string{"namespaces", "namespace", "excludedNamespaces", "namespaceObject", "name"} {
		for _, value := range g.vocabulary.near[name] {
			text, _ := value.(string)
			exact = append(exact, texts(text)...)
			if name != "name" {
				almost = append(almost, alike(text)...)
			}
		}
	}
	for _, name := range distinct(append(exact, almost...)) {
		if len(validation.IsDNS1123Label(name)) == 0 && len(g.namespaces) < maxNamespaces {
			g.namespaces = append(g.namespaces, name)
		}
	}
	return g
}

// maxNamespaces bounds the namespaces of variants.
const maxNamespaces = 24

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
		sites[i].allowed = k.allowed(sites[i].path)
		for n, m := range g.vocabulary.mutations(&sites[i]) {
			depth := len(sites[i].path)
			if of := len(sites[i].path) - 3; of >= 0 && sites[i].name() == "image" && sites[i].path[of] == "containers" {
				depth = 2 // many policies are about images, deep as they are
			}
			m.rank = n + depthRank*depth
			k.mutations = append(k.mutations, m)
		}
	}
	slices.SortStableFunc(k.mutations, func(a, b mutation) int { return cmp.Compare(a.rank, b.rank) })
	g.kinds[gvk] = k
	return k
}

// depthRank is by how many turns the mutations of a field come later for each step of its path: few policies are about what is
// deep, and there is much of it.
const depthRank = 2

// allowed are the only values that a field may have; nil where that is not so.
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

// Variants yields the minimal objects of all kinds that the rules match, and then variants of these and of
// others, first with one difference each, then with several. There are no more of them than the limit,
// no two alike, and always the same for the same seed.
func (g *Generator) Variants(ctx context.Context, others []engine.Target) iter.Seq[Variant] {
	return func(yield func(Variant) bool) {
		s := &stream{generator: g, ctx: ctx, seen: map[uint64]bool{}, yield: yield, left: g.o.Limit}
		bases := g.bases(ctx, others)
		for _, base := range bases {
			if !s.emit(base) {
				return
			}
		}
		all := s.singles(bases)
		s.crossed(all)
		s.combined(all)
	}
}

// bases are the objects from which variants are derived: minimal ones, these with all that policies
// name, and the others; each also with what rules ask for beside it.
func (g *Generator) bases(ctx context.Context, others []engine.Target) []Variant {
	var out []Variant
	for _, gvk := range g.Kinds() {
		base, ok := g.Minimal(ctx, gvk)
		if !ok {
			continue
		}
		for _, t := range append([]engine.Target{base}, g.selected(base)...) {
			out = append(out, Variant{Target: t})
		}
	}
	for i := range out {
		out = append(out, out[i].with(g.full(ctx, out[i].Object)))
	}
	for _, t := range others {
		if !engine.IsSecret(t.Object) {
			t.OldObject, t.Request.Operation = nil, "" // those of the request that is compared
			out = append(out, Variant{Target: t})
		}
	}
	for i := range out {
		if v := g.accompanied(ctx, out[i]); len(v.Beside) > 0 {
			full := v
			full.Beside = nil
			for _, u := range v.Beside {
				full.Beside = append(full.Beside, g.full(ctx, u))
			}
			out = append(out, v, full)
		}
	}
	return out
}

// full is an object with a value in each field that policies name, as far as it stays valid.
func (g *Generator) full(ctx context.Context, u *unstructured.Unstructured) *unstructured.Unstructured {
	k := g.kind(ctx, u.GroupVersionKind())
	done := map[string]bool{}
	for i := range k.mutations {
		m := &k.mutations[i]
		at := strings.Join(m.site.path, "\x00")
		if empty, ok := m.value.(map[string]any); ok && len(empty) == 0 || m.value == nil || done[at] || m.site.name() == otherKey {
			continue
		}
		if list, ok := m.value.([]any); ok && len(list) == 0 {
			continue
		}
		object := u.DeepCopy()
		if k.apply(m, object) && g.Valid(ctx, object) {
			u, done[at] = object, true
		}
	}
	return u
}

// maxBeside bounds the objects beside a variant.
const maxBeside = 4

// accompanied is a variant with the objects beside it that its rules ask for.
func (g *Generator) accompanied(ctx context.Context, v Variant) Variant {
	if g.o.Try == nil {
		return v
	}
	const rounds = 2 // what is found leads to more
	for range rounds {
		for _, s := range g.o.Try(ctx, v).Asked {
			if u := g.answer(ctx, s, v); u != nil && len(v.Beside) < maxBeside {
				v.Beside = append(v.Beside[:len(v.Beside):len(v.Beside)], u)
			}
		}
	}
	return v
}

// answer is a minimal object that a selection selects; nil where the variant has one, or nothing is known of the
// kind.
func (g *Generator) answer(ctx context.Context, s engine.Selection, v Variant) *unstructured.Unstructured {
	gvk, ok := g.kindOf(s)
	if !ok || gvk.Kind == "Namespace" && gvk.Group == "" && s.Name == v.Key.Namespace {
		return nil
	}
	base, ok := g.Minimal(ctx, gvk)
	if !ok {
		return nil
	}
	if s.Name == "" {
		s.Name = "beside"
	}
	if s.Namespace == "" {
		s.Namespace = v.Key.Namespace
	}
	t := fit(base, s)
	if gvk == (schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}) { // one that nobody would read has no data
		t.Object.Object["data"] = map[string]any{minimalName: minimalName}
	}
	same := func(u *unstructured.Unstructured) bool { return engine.KeyOf(u).Named() == t.Key.Named() }
	if !g.Valid(ctx, t.Object) || same(v.Object) || slices.ContainsFunc(v.Beside, same) {
		return nil
	}
	return t.Object
}

// maxSelected bounds the minimal objects of one kind.
const maxSelected = 8

// selected are minimal objects with the names, the namespaces and the labels that the rules select, if any.
func (g *Generator) selected(base engine.Target) []engine.Target {
	var out []engine.Target
	for _, s := range g.o.Matches {
		if s.Name+s.Namespace == "" && s.Labels == nil || s.Subresource != "" || !g.selects(s, base.Object.GroupVersionKind(), base.Mapping) {
			continue
		}
		t := fit(base, s)
		known := slices.ContainsFunc(out, func(o engine.Target) bool { return reflect.DeepEqual(o.Object, t.Object) })
		if !known && len(out) < maxSelected && !reflect.DeepEqual(base.Object, t.Object) {
			out = append(out, t)
		}
	}
	return out
}

// fit gives an object the name, the namespace and the labels of a selection.
func fit(base engine.Target, s engine.Selection) engine.Target {
	object := base.Object.DeepCopy()
	if s.Name != "" {
		rename(object, wildcards.Replace(s.Name))
	}
	if s.Namespace != "" && object.GetNamespace() != "" {
		object.SetNamespace(wildcards.Replace(s.Namespace))
	}
	if s.Labels != nil {
		labels := object.GetLabels()
		if labels == nil {
			labels = map[string]string{}
		}
		for key, value := range s.Labels.MatchLabels {
			labels[wildcards.Replace(key)] = wildcards.Replace(value)
		}
		object.SetLabels(labels)
	}
	t := base.With(object)
	t.Key = engine.KeyOf(object)
	if t.Namespace != nil {
		t.Namespace = engine.BareNamespace(object.GetNamespace())
	}
	return t
}

// rename gives an object another name, and a Namespace the label that has it.
func rename(u *unstructured.Unstructured, name string) {
	u.SetName(name)
	if labels := u.GetLabels(); u.GetKind() == "Namespace" && labels != nil {
		labels[corev1.LabelMetadataName] = name
		u.SetLabels(labels)
	}
}

// stream yields variants.
type stream struct {
	generator *Generator
	ctx       context.Context // of one call
	seen      map[uint64]bool
	yield     func(Variant) bool
	left      int
	ended     bool
}

// emit yields an object, unless it was there before or is not valid, and reports whether to go on.
func (s *stream) emit(v Variant) bool {
	if s.ended || s.ctx.Err() != nil {
		return false
	}
	v.Object = s.generator.stripped(s.ctx, v.Object)
	beside := make([]*unstructured.Unstructured, len(v.Beside))
	for i, u := range v.Beside {
		beside[i] = s.generator.stripped(s.ctx, u)
	}
	v.Beside = beside
	if v.OldObject != nil {
		v.OldObject = s.generator.stripped(s.ctx, v.OldObject)
	}
	sum := fnv.New64a()
	var labels map[string]string
	if v.Namespace != nil {
		labels = v.Namespace.GetLabels()
	}
	text, err := json.Marshal([]any{v.Object, v.OldObject, v.Request.User, labels, v.Beside})
	if err != nil {
		return true
	}
	sum.Write(text)
	if s.seen[sum.Sum64()] {
		return true
	}
	s.seen[sum.Sum64()] = true
	if !s.generator.valid(s.ctx, v) {
		return true
	}
	s.left--
	if s.left < 0 || !s.yield(v) {
		s.ended = true
	}
	return !s.ended
}

// stripped is an object as a server has it, without what that drops.
func (g *Generator) stripped(ctx context.Context, u *unstructured.Unstructured) *unstructured.Unstructured {
	k := g.kind(ctx, u.GroupVersionKind())
	if !k.typ.EmptyIsAbsent || k.typ.Schema == nil {
		return u
	}
	content, _ := k.stripped(u.Object, k.typ.Ref).(map[string]any)
	return &unstructured.Unstructured{Object: content}
}

// valid reports whether a server would take the objects of a variant, as far as that is known.
func (g *Generator) valid(ctx context.Context, v Variant) bool {
	if old := v.OldObject; old != nil && (engine.KeyOf(old).Named() != engine.KeyOf(v.Object).Named() || !g.Valid(ctx, old)) {
		return false
	}
	return g.Valid(ctx, v.Object) && !slices.ContainsFunc(v.Beside, func(u *unstructured.Unstructured) bool { return !g.Valid(ctx, u) })
}

// step is one difference: of the object, or of what is around it.
type step func(Variant) (Variant, bool)

// steps are all single differences of a variant, those of its fields, of what is around it, and of the objects beside it in turn.
func (s *stream) steps(base Variant) []step {
	around := inTurn(s.generator.around(s.generator.kind(s.ctx, base.Object.GroupVersionKind())))
	lists := [][]step{inTurn([][]step{s.mutations(base.Object, -1), around})}
	for i, u := range base.Beside {
		lists = append(lists, append(s.generator.renamed(i), s.mutations(u, i)...))
	}
	return inTurn(lists)
}

// inTurn joins lists: the first elements of all, then the second ones.
func inTurn[T any](lists [][]T) []T {
	var out []T
	for n, more := 0, true; more; n++ {
		more = false
		for _, list := range lists {
			if n < len(list) {
				out, more = append(out, list[n]), true
			}
		}
	}
	return out
}

// mutations are the differences in the fields of an object: the one with an index beside a variant, or its own for -1.
func (s *stream) mutations(u *unstructured.Unstructured, beside int) []step {
	k := s.generator.kind(s.ctx, u.GroupVersionKind())
	mutations := k.mutations
	if k.typ.Schema == nil || len(mutations) == 0 {
		sites := s.generator.vocabulary.sitesOf(u.Object)
		for i := range sites {
			mutations = append(mutations, s.generator.vocabulary.mutations(&sites[i])...)
		}
	}
	out := make([]step, 0, len(mutations))
	for i := range mutations {
		m := &mutations[i]
		change := changing(beside, func(u *unstructured.Unstructured) bool { return k.apply(m, u) })
		out = append(out, change)
		if beside < 0 && s.generator.vocabulary.words["oldObject"] {
			out = append(out, func(v Variant) (Variant, bool) {
				old := v.Object
				v, ok := change(v)
				v.OldObject = old
				return v, ok
			})
		}
	}
	return out
}

// apply changes a copy of an object, and adds what the structs need that it makes for that.
func (k *kind) apply(m *mutation, u *unstructured.Unstructured) bool {
	changed := m.apply(u.Object)
	if changed && m.value != nil && k.typ.Schema != nil {
		k.completed(u.Object, k.typ.Ref, nil)
	}
	return changed
}

// changing is a step that changes a copy of an object: the one with an index beside the variant, or its own for -1.
func changing(beside int, do func(*unstructured.Unstructured) bool) step {
	return func(v Variant) (Variant, bool) {
		if beside < 0 {
			object := v.Object.DeepCopy()
			ok := do(object)
			return v.with(object), ok
		}
		object := v.Beside[beside].DeepCopy()
		v.Beside = slices.Clone(v.Beside)
		v.Beside[beside] = object
		return v, do(object)
	}
}

// renamed are the steps that give an object beside a variant other names.
func (g *Generator) renamed(beside int) []step {
	var out []step
	for _, name := range g.names() {
		out = append(out, changing(beside, func(u *unstructured.Unstructured) bool {
			rename(u, name)
			return true
		}))
	}
	return append(out, changing(beside, func(u *unstructured.Unstructured) bool {
		inOne := u.GetNamespace() != ""
		if inOne {
			u.SetNamespace("other")
		}
		return inOne
	}))
}

// maxNames bounds the names of variants.
const maxNames = 32

// names are those that policies name, and such as are almost the same.
func (g *Generator) names() []string {
	var exact, almost []string
	for _, of := range []string{"names", "name"} {
		for _, value := range g.vocabulary.near[of] {
			exact = append(exact, namesOf(value)...)
			text, _ := value.(string)
			almost = append(almost, alike(text)...)
		}
	}
	almost = slices.DeleteFunc(almost, func(name string) bool { return len(validation.IsDNS1123Subdomain(name)) > 0 })
	out := distinct(append(exact, almost...))
	return out[:min(len(out), maxNames)]
}

// around are differences of the name, the user, the namespace and its labels.
func (g *Generator) around(k *kind) [][]step {
	names := g.names()
	if !k.namespaced {
		names = distinct(append(names, g.namespaces...))
	}
	out := [][]step{each(names, named), each(g.users(), by), each(g.prefixes(k), unnamed)}
	if !k.namespaced {
		return out
	}
	out = append(out, each(distinct(append(slices.Clone(g.namespaces), "default", "kube-system")), in))
	var labels [][]step
	for _, key := range g.vocabulary.keys {
		values := slices.DeleteFunc(g.vocabulary.labelValues(key), func(value string) bool { return len(validation.IsValidLabelValue(value)) > 0 })
		if key != corev1.LabelMetadataName {
			labels = append(labels, each(values, func(value string) step { return inLabelled(key, value) }))
		}
	}
	return append(out, inTurn(labels))
}

// prefixes are beginnings of names that a server makes, where policies ask for the names of Pods: what makes these leaves
// their names to the server.
func (g *Generator) prefixes(k *kind) []string {
	v := g.vocabulary
	if g.o.Named || k.gvk.Kind != "Pod" || !v.words["names"] && !v.words["generateName"] && !slices.Contains(v.below["metadata"], "name") {
		return nil
	}
	names := g.names()
	if len(names) == 0 {
		return []string{minimalName}
	}
	return names[:min(len(names), maxNamed)]
}

// each returns a step for each value.
func each[T any](values []T, of func(T) step) []step {
	out := make([]step, len(values))
	for i, value := range values {
		out[i] = of(value)
	}
	return out
}

// named gives the object another name.
func named(name string) step {
	return func(v Variant) (Variant, bool) {
		v.Object = v.Object.DeepCopy()
		rename(v.Object, name)
		v.Key.Name = name
		return v, true
	}
}

// unnamed takes the name from the object, so that the server makes one of its beginning. There is none before it is created.
func unnamed(prefix string) step {
	return func(v Variant) (Variant, bool) {
		v.Object, v.OldObject = v.Object.DeepCopy(), nil
		unstructured.RemoveNestedField(v.Object.Object, "metadata", "name")
		v.Object.SetGenerateName(prefix)
		v.Key.Name, v.Request.Operation = "", engine.OperationCreate
		return v, true
	}
}

// by makes the request one of another user.
func by(user engine.UserInfo) step {
	return func(v Variant) (Variant, bool) {
		v.Request.User = user
		return v, true
	}
}

// in moves the object to another namespace.
func in(namespace string) step {
	return func(v Variant) (Variant, bool) {
		v.Object = v.Object.DeepCopy()
		v.Object.SetNamespace(namespace)
		v.Key.Namespace = namespace
		v.Namespace = engine.BareNamespace(namespace)
		return v, true
	}
}

// inLabelled gives the namespace of the object a label.
func inLabelled(key, value string) step {
	return func(v Variant) (Variant, bool) {
		namespace := v.Namespace
		if namespace == nil {
			namespace = engine.BareNamespace(v.Key.Namespace)
		}
		namespace = namespace.DeepCopy()
		labels := namespace.GetLabels()
		if labels == nil {
			labels = map[string]string{}
		}
		labels[key] = value
		namespace.SetLabels(labels)
		v.Namespace = namespace
		return v, true
	}
}

// users are those that policies name, and one that none names, if they ask for the user.
func (g *Generator) users() []engine.UserInfo {
	words := g.vocabulary.words
	if !words["userInfo"] && !words["subjects"] {
		return nil
	}
	const service = "system:serviceaccount:"
	var names []string
	var users, accounts, near []engine.UserInfo
	for _, field := range []string{"username", "groups", "name"} {
		for _, value := range g.vocabulary.near[field] {
			name, ok := value.(string)
			if name = wildcards.Replace(name); !ok || name == "" || strings.ContainsAny(name, "{}") || slices.Contains(names, name) {
				continue
			}
			names = append(names, name)
			users = append(users, engine.UserInfo{Username: name, Groups: []string{"other"}}, engine.UserInfo{Username: "other", Groups: []string{"other", name}})
			near = append(near, engine.UserInfo{Username: "x" + name}, engine.UserInfo{Username: name + "x"})
		}
	}
	for _, namespace := range append([]string{"other"}, g.namespaces...) {
		for _, name := range append([]string{"other"}, names...) {
			accounts = append(accounts, engine.UserInfo{Username: service + namespace + ":" + name})
		}
	}
	out := []engine.UserInfo{{Username: "other", Groups: []string{"system:authenticated"}}, {Username: service + minimalName + ":" + minimalName}}
	out = append(out, inTurn([][]engine.UserInfo{users, accounts, near})...)
	return out[:min(len(out), maxUsers)]
}

// maxUsers bounds the users of one object's variants.
const maxUsers = 40

// varied is a variant from which others with one difference are derived.
type varied struct {
	Variant
	steps []step
	every int // it gets a turn in every so many
	next  int
}

// repeated is how much rarer the turns are of a base on which rules do what they do on one before.
const repeated = 6

// varied are the bases, those rarer on which rules do nothing new.
func (s *stream) varied(bases []Variant) []*varied {
	g := s.generator
	var out []*varied
	for _, base := range bases {
		one := &varied{Variant: base, steps: s.steps(base), every: 1}
		if g.o.Try != nil {
			did := g.o.Try(s.ctx, base).Did
			if g.did[did] && len(base.Beside) == 0 { // with what is beside it a rule may do something only if that differs
				one.every = repeated
			}
			g.did[did] = did != ""
		}
		out = append(out, one)
	}
	g.learned, g.further = nil, 0 // what the bases show
	return out
}

// single yields the next variant with one difference, and reports whether to go on.
func (s *stream) single(of *varied) bool {
	if of.next == len(of.steps) {
		return true
	}
	v, ok := of.steps[of.next](of.Variant)
	of.next++
	return !ok || s.emit(v)
}

// singles yields the variants with one difference, those of all bases in turn, so that a small budget is spent on all
// of them. Between two of these is one of those that are learned meanwhile.
func (s *stream) singles(bases []Variant) []*varied {
	g, own := s.generator, s.varied(bases)
	var further []*varied
	turns := 0
	reserve := s.left / 4 //nolint:mnd // for combined differences
	for turn, more := 0, true; more; turn++ {
		more = false
		for _, one := range append(slices.Clip(own), further...) {
			more = more || one.next < len(one.steps)
		}
		for _, one := range own {
			if turn%one.every > 0 {
				continue
			}
			for ; len(g.learned) > 0; g.learned = g.learned[1:] {
				further = append(further, &varied{Variant: g.learned[0], steps: s.steps(g.learned[0]), every: repeated})
			}
			if !s.single(one) {
				return own
			}
			if turns++; len(further) > 0 && !s.single(further[turns%len(further)]) {
				return own
			}
		}
		if s.left <= reserve {
			break
		}
	}
	all := append(own, further...)
	for _, one := range all {
		g.untried += len(one.steps) - one.next
	}
	return all
}

// The bounds of what is crossed.
const (
	maxCrossedBases = 3
	maxCrossed      = 8
)

// crossed yields variants with each name in each namespace: policies ask for these together.
func (s *stream) crossed(bases []*varied) {
	g := s.generator
	names, namespaces := g.names(), each(g.namespaces, in)
	left := maxCrossedBases
	for _, base := range bases {
		if base.every > 1 || left == 0 || base.Object.GetNamespace() == "" {
			continue
		}
		left--
		prefixes := g.prefixes(g.kind(s.ctx, base.Object.GroupVersionKind()))
		for _, way := range append(each(names[:min(len(names), maxCrossed)], named), each(prefixes, unnamed)...) {
			for _, move := range namespaces[:min(len(namespaces), maxCrossed)] {
				v, _ := move(base.Variant)
				if v, ok := way(v); ok && !s.emit(v) {
					return
				}
			}
		}
	}
}

// combined yields variants with several differences, which the seed chooses.
func (s *stream) combined(bases []*varied) {
	if len(bases) == 0 {
		return
	}
	random := rand.New(rand.NewPCG(s.generator.o.Seed, 1)) //nolint:gosec // it has to be repeatable
	for tries := 10 * s.generator.o.Limit; tries > 0; tries-- {
		base := bases[random.IntN(len(bases))]
		if len(base.steps) == 0 || random.IntN(base.every) > 0 {
			continue
		}
		t := base.Variant
		for range 2 + random.IntN(3) {
			if next, ok := base.steps[random.IntN(len(base.steps))](t); ok {
				t = next
			}
		}
		if !s.emit(t) {
			return
		}
	}
}
