package variant

import (
	"context"
	"reflect"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/selector"
)

// bases are the objects from which variants are derived: minimal ones, these with all that policies
// name, and the others; each also with what rules ask for beside it.
func (g *Generator) bases(ctx context.Context, others []engine.Target) []Variant {
	var out []Variant
	for _, gvk := range g.Kinds() {
		if base, ok := g.Minimal(ctx, gvk); ok {
			out = append(append(out, Variant{Target: base}), g.selected(base)...)
		}
	}
	out = append(out, g.requests(ctx)...)
	for _, base := range out {
		out = append(out, base.with(g.full(ctx, base.Object)))
	}
	for _, t := range others {
		if !engine.IsSecret(t.Object) {
			t.OldObject, t.Request.Operation = nil, "" // those of the request that is compared
			out = append(out, Variant{Target: t, there: true})
		}
	}
	for _, base := range out {
		out = append(out, g.accompanied(ctx, base)...)
	}
	return out
}

// How much rarer the turns are of an object that is there, and of a controller that no policy names, on which rules probably do what
// they do on the first one; and of a kind that no rule matches.
const (
	repeated = 3
	stranger = 40
)

// turns says in how many turns a base gets one.
func (g *Generator) turns(ctx context.Context, base Variant) int {
	gvk := base.Object.GroupVersionKind()
	selected := func(gvk schema.GroupVersionKind) bool {
		mapping := g.kind(ctx, gvk).mapping
		return mapping != nil && slices.ContainsFunc(g.o.Matches, func(s engine.Selection) bool { return selects(s, gvk, mapping) })
	}
	switch main := slices.IndexFunc(controllers, selected); {
	case base.Key.Subresource != "":
	case !selected(gvk):
		return stranger
	case base.there, slices.Contains(controllers[main+1:], gvk) && !g.literals.words[gvk.Kind]:
		return repeated
	}
	return 1
}

// requests are minimal requests to the subresources that the rules match.
func (g *Generator) requests(ctx context.Context) []Variant {
	all := g.eachRequest()
	if g.literals.words["ephemeralContainers"] && slices.Contains(g.Kinds(), controllers[0]) {
		all = append(all, engine.Selection{Version: "v1", Kind: "Pod", Subresource: "ephemeralcontainers"})
	}
	var out []Variant
	for _, s := range all {
		of, _ := g.requested(s)
		body, known := engine.KindOfRequest(of, s.Subresource)
		base, ok := g.Minimal(ctx, body)
		if !known || !ok {
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
		if (!g.o.Named || t.Request.Operation != engine.OperationCreate) && !slices.ContainsFunc(out, func(v Variant) bool { return v.Key == t.Key }) {
			out = append(out, Variant{Target: t})
		}
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

// subresources are those that kinds have besides their status.
var subresources = map[string][]string{ //nolint:gochecknoglobals // an immutable table
	"Pod": {"ephemeralcontainers", "resize", "binding", "eviction"}, "ServiceAccount": {"token"}, "Namespace": {"finalize"},
	"Deployment": {"scale"}, "StatefulSet": {"scale"}, "ReplicaSet": {"scale"}, "ReplicationController": {"scale"},
}

// eachRequest are the requests that rules match, with the subresources that there are for a wildcard.
func (g *Generator) eachRequest() []engine.Selection {
	var out []engine.Selection
	for _, s := range g.o.Requests {
		known := []string{s.Subresource}
		if s.Subresource == engine.AnySubresource {
			of, named := g.requested(s)
			known = append([]string{"status"}, subresources[of.Kind]...)
			if !named {
				known = append(known, "scale")
			}
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
		at := strings.Join(m.field.path, "\x00")
		if isEmpty(m.value) || done[at] || m.field.name() == otherKey {
			continue
		}
		object := u.DeepCopy()
		if k.apply(m, object) && g.Valid(ctx, object) {
			u, done[at] = object, true
		}
	}
	return u
}

func isEmpty(value any) bool {
	switch value := value.(type) {
	case nil:
		return true
	case []any:
		return len(value) == 0
	case map[string]any:
		return len(value) == 0
	}
	return false
}

// maxBeside bounds the objects beside a variant.
const maxBeside = 4

// accompanied are variants alone with what their rules ask for: with nothing of it, as far as there is any; with copies of that;
// with objects that are made up, minimal ones and such with all that policies name.
func (g *Generator) accompanied(ctx context.Context, v Variant) []Variant {
	if g.o.Asked == nil {
		return nil
	}
	var out []Variant
	alone := v
	alone.Alone = true
	if carried, found := g.carrying(ctx, v); found {
		out = append(out, alone)
		if len(carried.Beside) > 0 {
			out = append(out, carried)
		}
	}
	const rounds = 2 // what is found leads to more
	for range rounds {
		for _, s := range g.o.Asked(ctx, alone) {
			if u := g.answer(ctx, s, alone); u != nil {
				alone = alone.beside(u)
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

// beside returns the variant with one more object beside it, if there is room for it.
func (v Variant) beside(u *unstructured.Unstructured) Variant {
	if len(v.Beside) < maxBeside {
		v.Beside = append(slices.Clip(v.Beside), u)
	}
	return v
}

// carrying returns a variant alone with copies of the objects that its rules ask for, and whether they find any. There are none of Secrets.
func (g *Generator) carrying(ctx context.Context, v Variant) (Variant, bool) {
	out, found := v, false
	out.Alone = true
	for _, s := range g.o.Asked(ctx, v) {
		gvk, ok := g.kindOf(s)
		if !ok {
			continue
		}
		s.Group, s.Kind, s.Resource, s.Version = gvk.Group, gvk.Kind, "", gvk.Version
		for u, err := range g.o.Reader.List(ctx, s) {
			if err != nil || len(out.Beside) == maxBeside {
				break
			}
			if s.Name == "" && u.GroupVersionKind() == v.Object.GroupVersionKind() || out.has(u) {
				continue // others of its kind are compared for themselves
			}
			if found = true; !engine.IsSecret(u) {
				out = out.beside(copied(u))
			}
		}
	}
	return out, found
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
	if u.GroupVersionKind() == common[0] {
		_ = unstructured.SetNestedField(u.Object, minimalName, "data", minimalName)
	}
}

// has reports whether a variant has an object of its own.
func (v Variant) has(u *unstructured.Unstructured) bool {
	key := engine.KeyOf(u).Named()
	same := func(u *unstructured.Unstructured) bool { return u != nil && engine.KeyOf(u).Named() == key }
	return same(v.Object) || same(v.Namespace) || slices.ContainsFunc(v.Beside, same)
}

// answer is a minimal object that a selection selects; nil where the variant has one, or nothing is known of the
// kind.
func (g *Generator) answer(ctx context.Context, s engine.Selection, v Variant) *unstructured.Unstructured {
	gvk, ok := g.kindOf(s)
	if !ok || gvk == common[2] && s.Name == v.Key.Namespace {
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
	u := fit(base, s).Object
	withData(u)
	if !g.Valid(ctx, u) || v.has(u) {
		return nil
	}
	return u
}

// maxSelected bounds the minimal objects of one kind.
const maxSelected = 8

// selected are minimal objects with the names, the namespaces and the labels that the rules select, if any.
func (g *Generator) selected(base engine.Target) []Variant {
	var out []Variant
	for _, s := range g.o.Matches {
		if s.Name+s.Namespace == "" && s.Labels == nil || !selects(s, base.Object.GroupVersionKind(), base.Mapping) {
			continue
		}
		t := fit(base, s)
		same := func(o Variant) bool { return reflect.DeepEqual(o.Object, t.Object) }
		if len(out) < maxSelected && !same(Variant{Target: base}) && !slices.ContainsFunc(out, same) {
			out = append(out, Variant{Target: t})
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
		for key, value := range s.Labels.MatchLabels {
			_ = unstructured.SetNestedField(object.Object, wildcards.Replace(value), "metadata", "labels", wildcards.Replace(key))
		}
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
	if u.GetLabels()[corev1.LabelMetadataName] != "" && u.GroupVersionKind() == common[2] {
		_ = unstructured.SetNestedField(u.Object, name, "metadata", "labels", corev1.LabelMetadataName)
	}
}
