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
	// Asked returns which objects the rules ask for when they are evaluated on a variant: its targets, and what
	// they read. Nil has none of them beside it.
	Asked func(context.Context, Variant) []engine.Selection
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
func (g *Generator) Variants(ctx context.Context, others []engine.Target) iter.Seq[Variant] {
	return func(yield func(Variant) bool) {
		s := &stream{generator: g, ctx: ctx, seen: map[uint64]bool{}, yield: yield, left: g.o.Limit}
		bases := g.bases(ctx, others)
		for _, base := range bases {
			if !s.emit(base) {
				return
			}
		}
		s.singles(bases)
		s.combined(bases)
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
			t.OldObject = nil // that of the request that is compared
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
		if empty, ok := m.value.(map[string]any); ok && len(empty) == 0 || m.value == nil || done[at] {
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
	if g.o.Asked == nil {
		return v
	}
	const rounds = 2 // what is found leads to more
	for range rounds {
		for _, s := range g.o.Asked(ctx, v) {
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
		maps.Copy(labels, s.Labels.MatchLabels)
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

// steps are all single differences of a variant, those of its object and of the objects beside it in turn.
func (s *stream) steps(base Variant) []step {
	lists := [][]step{append(s.mutations(base.Object, -1), s.generator.around(s.generator.kind(s.ctx, base.Object.GroupVersionKind()))...)}
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
	for _, value := range slices.Concat(g.vocabulary.near["names"], g.vocabulary.near["name"]) {
		if name, ok := value.(string); ok && len(validation.IsDNS1123Subdomain(wildcards.Replace(name))) == 0 {
			out = append(out, changing(beside, func(u *unstructured.Unstructured) bool {
				rename(u, wildcards.Replace(name))
				return true
			}))
		}
	}
	return out
}

// around are differences of the name, the namespace and its labels.
func (g *Generator) around(k *kind) []step {
	var out []step
	named := func(name string) {
		out = append(out, func(v Variant) (Variant, bool) {
			v.Object = v.Object.DeepCopy()
			rename(v.Object, name)
			v.Key.Name = name
			return v, len(validation.IsDNS1123Subdomain(name)) == 0
		})
	}
	for _, value := range g.vocabulary.near["names"] {
		if name, ok := value.(string); ok {
			named(wildcards.Replace(name))
		}
	}
	for _, user := range g.users() {
		out = append(out, func(v Variant) (Variant, bool) {
			v.Request.User = user
			return v, true
		})
	}
	if !k.namespaced {
		for _, name := range g.namespaces {
			named(name)
		}
		return out
	}
	for _, name := range append(slices.Clone(g.namespaces), "default", "kube-system") {
		out = append(out, func(v Variant) (Variant, bool) {
			v.Object = v.Object.DeepCopy()
			v.Object.SetNamespace(name)
			v.Key.Namespace = name
			v.Namespace = engine.BareNamespace(name)
			return v, true
		})
	}
	for _, key := range g.vocabulary.keys {
		for _, value := range append(slices.Clone(g.vocabulary.labels[key]), "other") {
			if key == corev1.LabelMetadataName || len(validation.IsValidLabelValue(value)) > 0 {
				continue
			}
			out = append(out, func(v Variant) (Variant, bool) {
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
			})
		}
	}
	return out
}

// users are those that policies name, and one that none names, if they ask for the user.
func (g *Generator) users() []engine.UserInfo {
	words := g.vocabulary.words
	if !words["userInfo"] && !words["subjects"] {
		return nil
	}
	const service = "system:serviceaccount:"
	out := []engine.UserInfo{{Username: "other", Groups: []string{"system:authenticated"}}, {Username: service + minimalName + ":" + minimalName}}
	for _, field := range []string{"username", "groups", "name"} {
		for _, value := range g.vocabulary.near[field] {
			name, ok := value.(string)
			if !ok || strings.ContainsAny(name, "{}") {
				continue
			}
			name = wildcards.Replace(name)
			out = append(out, engine.UserInfo{Username: name, Groups: []string{"other", name}})
			for _, namespace := range g.namespaces {
				out = append(out, engine.UserInfo{Username: service + namespace + ":" + name})
			}
		}
	}
	return out[:min(len(out), maxUsers)]
}

// maxUsers bounds the users of one object's variants.
const maxUsers = 20

// singles yields the variants with one difference, those of all bases in turn, so that a small budget is
// spent on all of them.
func (s *stream) singles(bases []Variant) {
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
func (s *stream) combined(bases []Variant) {
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
