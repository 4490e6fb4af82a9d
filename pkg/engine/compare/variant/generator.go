package variant

import (
	"cmp"
	"context"
	"iter"
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
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/selector"
)

// DefaultLimit is how many variants are derived where the user does not say.
const DefaultLimit = 2000

// Options tune a Generator.
type Options struct {
	// Policies are those whose texts suggest what to vary.
	Policies []*unstructured.Unstructured
	// Matches are the objects that the rules match, and Requests the requests to subresources.
	Matches, Requests []engine.Selection
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
	// Did is equal where they did the same; empty where that is not known, or must not be shown.
	Did string
}

// Variant is an object that is not there, but could be.
type Variant struct {
	engine.Target
	// Beside are other objects that are there with it, and not without it.
	Beside []*unstructured.Unstructured
	// Alone says that nothing else is there.
	Alone bool
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
	found      map[[3]string]foundKind // by group, kind and resource
	did        map[string]bool         // what rules have done so far
	learned    []Variant               // those on which they did something else, to be varied further
	further    int                     // how many of these there were
	untried    int
}

// foundKind is the kind that a selection names, if it does.
type foundKind struct {
	gvk schema.GroupVersionKind
	ok  bool
}

// Untried counts the differences of one field that the limit had no place for, when the variants have ended.
func (g *Generator) Untried() int { return g.untried }

// Learn records what the rules did on a variant. One on which they do what they did on none before is varied further: this is how
// variants meet several conditions.
func (g *Generator) Learn(v Variant, did string) {
	if did = g.reaction(v, did); did != "" && !g.did[did] && g.further < maxLearned {
		g.did[did] = true
		g.further++
		g.learned = append(g.learned, v)
	}
}

// reaction is what rules did on a variant, which is another thing for each kind that policies name: they may treat them differently.
func (g *Generator) reaction(v Variant, did string) string {
	if kind := v.Object.GetKind(); did != "" && g.vocabulary.kinds[kind] {
		return kind + "\x00" + did
	}
	return did
}

// isSelected reports whether a rule may be about the object of a variant, because of its kind.
func (g *Generator) isSelected(v Variant) bool {
	mapping := v.Mapping
	if v.Key.Subresource != "" || mapping == nil {
		return true
	}
	return slices.ContainsFunc(g.o.Matches, func(s engine.Selection) bool { return g.selects(s, v.Object.GroupVersionKind(), mapping) })
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
	g := &Generator{o: o, vocabulary: newVocabulary(o.Policies), kinds: map[schema.GroupVersionKind]*kind{}, found: map[[3]string]foundKind{}, did: map[string]bool{}}
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
	for _, name := range engine.Distinct(append(exact, almost...)) {
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
	{Version: "v1", Kind: "ConfigMap"}, {Version: "v1", Kind: "Service"}, {Version: "v1", Kind: "Namespace"}, {Version: "v1", Kind: "Node"},
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
	key := [...]string{s.Group, s.Kind, s.Resource}
	found, known := g.found[key]
	if !known {
		found.gvk, found.ok = g.findKind(s)
		g.found[key] = found
	}
	return found.gvk, found.ok
}

// plain matches names without wildcards.
var plain = regexp.MustCompile(`^[A-Za-z0-9.-]*$`)

// findKind is kindOf, which asks for each kind once: the mapper of a cluster reads all that this serves for a question.
func (g *Generator) findKind(s engine.Selection) (schema.GroupVersionKind, bool) {
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
	out = append(out, g.requests(ctx)...)
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
		out = append(out, g.accompanied(ctx, out[i])...)
	}
	return out
}

// requests are minimal requests to the subresources that the rules match.
func (g *Generator) requests(ctx context.Context) []Variant {
	all := g.eachRequest()
	if g.vocabulary.words["ephemeralContainers"] && slices.ContainsFunc(g.Kinds(), func(gvk schema.GroupVersionKind) bool { return gvk == controllers[0] }) {
		all = append(all, engine.Selection{Version: "v1", Kind: "Pod", Subresource: "ephemeralcontainers"})
	}
	var out []Variant
	for _, s := range all {
		of, _ := g.requested(s)
		body, ok := engine.KindOfRequest(of, s.Subresource)
		if !ok {
			continue
		}
		base, ok := g.Minimal(ctx, body)
		if !ok {
			continue
		}
		t := base
		if !selector.HasWildcard(s.Namespace + s.Name) {
			t = fit(base, engine.Selection{Namespace: s.Namespace, Name: s.Name, Labels: s.Labels})
		}
		// What there is a request for is there, and has a name.
		t.Key.GroupKind, t.Key.Version, t.Key.Subresource, t.Mapping = of.GroupKind(), of.Version, s.Subresource, g.kind(ctx, of).mapping
		t.Request.Operation = engine.OperationUpdate
		if body != of && s.Subresource != "scale" {
			t.Request.Operation = engine.OperationCreate
		}
		if g.o.Named && t.Request.Operation == engine.OperationCreate ||
			slices.ContainsFunc(out, func(v Variant) bool { return reflect.DeepEqual(v.Key, t.Key) }) {
			continue
		}
		out = append(out, Variant{Target: t})
	}
	return out
}

// requested is the kind of the object that there is a request for. It reports whether the selection names it.
func (g *Generator) requested(s engine.Selection) (schema.GroupVersionKind, bool) {
	of, ok := g.kindOf(s)
	switch {
	case ok:
	case s.Subresource == "scale":
		of = controllers[1]
	default:
		of = controllers[0]
	}
	return of, ok
}

// eachRequest are the requests that rules match, with the subresources that there are for a wildcard.
func (g *Generator) eachRequest() []engine.Selection {
	var out []engine.Selection
	for _, s := range g.o.Requests {
		if s.Subresource != engine.AnySubresource {
			out = append(out, s)
			continue
		}
		of, named := g.requested(s)
		known := []string{"status"}
		switch {
		case of.Kind == "Pod":
			known = append(known, "ephemeralcontainers", "resize", "binding", "eviction")
		case slices.Contains([]string{"Deployment", "StatefulSet", "ReplicaSet", "ReplicationController"}, of.Kind):
			known = append(known, "scale")
		case of.Kind == "ServiceAccount":
			known = []string{"token"}
		case of.Kind == "Namespace":
			known = append(known, "finalize")
		}
		if !named {
			known = append(known, "scale")
		}
		for _, s.Subresource = range known {
			out = append(out, s)
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

// accompanied are variants alone with what their rules ask for: with nothing of it, as far as there is any; with copies of that;
// with objects that are made up, minimal ones and such with all that policies name.
func (g *Generator) accompanied(ctx context.Context, v Variant) []Variant {
	if g.o.Try == nil {
		return nil
	}
	var out []Variant
	alone := v
	alone.Alone = true
	if copied := g.carrying(ctx, v); copied.found {
		out = append(out, alone)
		if len(copied.Beside) > 0 {
			out = append(out, copied.Variant)
		}
	}
	const rounds = 2 // what is found leads to more
	for range rounds {
		for _, s := range g.o.Try(ctx, alone).Asked {
			if u := g.answer(ctx, s, alone); u != nil && len(alone.Beside) < maxBeside {
				alone.Beside = append(alone.Beside[:len(alone.Beside):len(alone.Beside)], u)
			}
		}
	}
	if len(alone.Beside) == 0 {
		return out
	}
	full := alone
	full.Beside = nil
	for _, u := range alone.Beside {
		full.Beside = append(full.Beside, g.full(ctx, u))
	}
	return append(out, alone, full)
}

// carried is a variant alone with what its rules ask for, and whether they find anything else than itself.
type carried struct {
	Variant
	found bool
}

// carrying is a variant alone with copies of the objects that its rules ask for. There are none of Secrets.
func (g *Generator) carrying(ctx context.Context, v Variant) carried {
	out := carried{Variant: v}
	out.Alone = true
	for _, s := range g.o.Try(ctx, v).Asked {
		gvk, ok := g.kindOf(s)
		if !ok {
			continue
		}
		s.Group, s.Kind, s.Resource, s.Version = gvk.Group, gvk.Kind, "", gvk.Version
		for u, err := range g.o.Reader.List(ctx, s) {
			if err != nil || len(out.Beside) == maxBeside {
				break
			}
			if s.Name == "" && u.GroupVersionKind() == v.Object.GroupVersionKind() || g.has(out.Variant, u) {
				continue // others of its kind are compared for themselves
			}
			if out.found = true; !engine.IsSecret(u) {
				out.Beside = append(out.Beside[:len(out.Beside):len(out.Beside)], copied(u))
			}
		}
	}
	return out
}

// copied is a copy of an object, without what a server writes into each.
func copied(u *unstructured.Unstructured) *unstructured.Unstructured {
	u = u.DeepCopy()
	for _, field := range []string{"managedFields", "resourceVersion", "uid", "generation"} {
		unstructured.RemoveNestedField(u.Object, "metadata", field)
	}
	withData(u)
	return u
}

// withData gives a ConfigMap data that policies do not name, so that it has some whatever is left out: one that is read has.
func withData(u *unstructured.Unstructured) {
	if u.GroupVersionKind() != (schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}) {
		return
	}
	data, _ := u.Object["data"].(map[string]any)
	if data == nil {
		data = map[string]any{}
		u.Object["data"] = data
	}
	data[minimalName] = minimalName
}

// has reports whether a variant has an object of its own.
func (g *Generator) has(v Variant, u *unstructured.Unstructured) bool {
	key := engine.KeyOf(u).Named()
	same := func(u *unstructured.Unstructured) bool { return u != nil && engine.KeyOf(u).Named() == key }
	return same(v.Object) || same(v.Namespace) || slices.ContainsFunc(v.Beside, same)
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
	withData(t.Object)
	if !g.Valid(ctx, t.Object) || g.has(v, t.Object) {
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
		if s.Name+s.Namespace == "" && s.Labels == nil || !g.selects(s, base.Object.GroupVersionKind(), base.Mapping) {
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
