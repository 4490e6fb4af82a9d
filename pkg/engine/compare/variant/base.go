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

// bases returns the objects to derive variants from: minimal ones, these with every field named in policies,
// and the others; each also with the objects that rules ask for.
func (g *Generator) bases(ctx context.Context, others []engine.Target) []Variant {
	var out []Variant
	for _, gvk := range g.Kinds() {
		if base, ok := g.Minimal(ctx, gvk); ok {
			out = append(append(out, Variant{Target: base}), g.selected(base)...)
		}
	}
	out = append(out, g.requests(ctx)...)
	for _, base := range out {
		base.Object = g.full(ctx, base.Object)
		out = append(out, base)
	}
	for _, t := range others {
		if !engine.IsSecret(t.Object) {
			if t.Written != nil {
				t.Object, t.Written = t.Written, nil // a variant is decoded where it is evaluated
			}
			t.OldObject, t.Request.Operation = nil, "" // the compared request sets these
			out = append(out, Variant{Target: t, there: true})
		}
	}
	for _, base := range out {
		out = append(out, g.accompanied(ctx, base)...)
	}
	return out
}

// turns returns how many turns pass between variants of a base: more for existing objects and for controllers
// that no policy names, since rules probably treat them like the first base; most if no rule matches the
// kind.
func (g *Generator) turns(ctx context.Context, base Variant) int {
	gvk := base.Object.GroupVersionKind()
	matched := func(gvk schema.GroupVersionKind) bool {
		mapping := g.kind(ctx, gvk).mapping
		return mapping != nil &&
			slices.ContainsFunc(g.o.Matches, func(s engine.Selection) bool { return selects(s, gvk, mapping) })
	}
	const rarely, hardly = 3, 40
	switch main := slices.IndexFunc(controllers, matched); {
	case base.Key.Subresource != "":
	case !matched(gvk):
		return hardly
	case base.there, slices.Contains(controllers[main+1:], gvk) && !g.literals.words[gvk.Kind]:
		return rarely
	}
	return 1
}

// subresources lists the subresources of kinds, except status.
var subresources = map[string][]string{ //nolint:gochecknoglobals // an immutable table
	"Pod": {"ephemeralcontainers", "resize", "binding", "eviction"}, "ServiceAccount": {"token"},
	"Namespace":  {"finalize"},
	"Deployment": {"scale"}, "StatefulSet": {"scale"}, "ReplicaSet": {"scale"},
	"ReplicationController": {"scale"},
}

// requests returns minimal requests to the subresources that the rules match; a wildcard matches the known
// ones.
func (g *Generator) requests(ctx context.Context) []Variant {
	all := slices.Clone(g.o.Requests)
	if g.literals.words["ephemeralContainers"] && slices.Contains(g.Kinds(), controllers[0]) {
		all = append(all, engine.Selection{Version: "v1", Kind: "Pod", Subresource: "ephemeralcontainers"})
	}
	var out []Variant
	for _, s := range all {
		of, known := g.kindOf(s), []string{s.Subresource}
		named := !of.Empty()
		if !named {
			of = controllers[0]
		}
		if s.Subresource == engine.AnySubresource {
			if known = append([]string{"status"}, subresources[of.Kind]...); !named {
				known = append(known, "scale")
			}
		}
		for _, s.Subresource = range known {
			if !named && s.Subresource == "scale" {
				of = controllers[1]
			}
			v, ok := g.request(ctx, s, of)
			if ok && !slices.ContainsFunc(out, func(other Variant) bool { return other.Key == v.Key }) {
				out = append(out, v)
			}
		}
	}
	return out
}

// request returns a minimal request to a subresource of a kind, and whether there is one.
func (g *Generator) request(ctx context.Context, s engine.Selection,
	of schema.GroupVersionKind,
) (Variant, bool) {
	body, known := engine.KindOfRequest(of, s.Subresource)
	t, ok := g.Minimal(ctx, body)
	if !known || !ok {
		return Variant{}, false
	}
	if !selector.HasWildcard(s.Namespace + s.Name) {
		t = fit(t, engine.Selection{Namespace: s.Namespace, Name: s.Name, Labels: s.Labels})
	}
	// The object of a subresource request exists and has a name.
	t.Key.GroupKind, t.Key.Version, t.Key.Subresource, t.Mapping = of.GroupKind(), of.Version,
		s.Subresource, g.kind(ctx, of).mapping
	t.Request.Operation = engine.OperationUpdate
	if body != of && s.Subresource != "scale" {
		t.Request.Operation = engine.OperationCreate
	}
	return Variant{Target: t}, !g.o.Named || t.Request.Operation != engine.OperationCreate
}

// full returns an object with a value in each field named in policies, as far as it stays valid.
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
		if k.apply(m, object.Object) && g.Valid(ctx, object) {
			u, done[at] = object, true
		}
	}
	return u
}

func isEmpty(value any) bool {
	v := reflect.ValueOf(value)
	return value == nil || (v.Kind() == reflect.Slice || v.Kind() == reflect.Map) && v.Len() == 0
}

// maxBeside bounds the companions of a variant.
const maxBeside = 4

// accompanied returns a variant with only the objects that its rules ask for: none of them, minimal ones, and
// ones with every field named in policies.
func (g *Generator) accompanied(ctx context.Context, v Variant) []Variant {
	if g.o.Asked == nil {
		return nil
	}
	alone := v
	alone.Alone = true
	out := []Variant{alone}
	const rounds = 2 // companions lead to more companions
	for range rounds {
		for _, s := range g.o.Asked(ctx, alone) {
			if u := g.answer(ctx, s, alone); u != nil && len(alone.Beside) < maxBeside {
				alone.Beside = append(slices.Clip(alone.Beside), u)
			}
		}
	}
	if len(alone.Beside) == 0 {
		return nil
	}
	full := alone
	full.Beside = nil
	for _, u := range alone.Beside {
		full.Beside = append(full.Beside, g.full(ctx, u))
	}
	return append(out, alone, full)
}

func (v Variant) has(u *unstructured.Unstructured) bool {
	key := engine.KeyOf(u).Named()
	same := func(u *unstructured.Unstructured) bool { return u != nil && engine.KeyOf(u).Named() == key }
	return same(v.Object) || same(v.Namespace) || slices.ContainsFunc(v.Beside, same)
}

// answer returns a minimal object for a selection; nil if the variant has one, or the kind is unknown.
func (g *Generator) answer(ctx context.Context, s engine.Selection, v Variant) *unstructured.Unstructured {
	gvk := g.kindOf(s)
	base, ok := g.Minimal(ctx, gvk)
	if !ok || gvk == common[2] && s.Name == v.Key.Namespace {
		return nil
	}
	if s.Name == "" {
		s.Name = "beside"
	}
	if s.Namespace == "" {
		s.Namespace = v.Key.Namespace
	}
	u := fit(base, s).Object
	if gvk == common[0] { // data not named in policies, so that it never becomes empty
		_ = unstructured.SetNestedField(u.Object, minimalName, "data", minimalName)
	}
	if !g.Valid(ctx, u) || v.has(u) {
		return nil
	}
	return u
}

// maxSelected bounds the minimal objects of a kind.
const maxSelected = 8

// selected returns minimal objects with the names, namespaces and labels that the rules select.
func (g *Generator) selected(base engine.Target) []Variant {
	var out []Variant
	for _, s := range g.o.Matches {
		if s.Name+s.Namespace == "" && s.Labels == nil ||
			!selects(s, base.Object.GroupVersionKind(), base.Mapping) {
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
			_ = unstructured.SetNestedField(object.Object, wildcards.Replace(value), "metadata",
				"labels", wildcards.Replace(key))
		}
	}
	t := base.With(object)
	t.Key = engine.KeyOf(object)
	if t.Namespace != nil {
		t.Namespace = engine.BareNamespace(object.GetNamespace())
	}
	return t
}

// rename renames an object, and the name label of a Namespace.
func rename(u *unstructured.Unstructured, name string) {
	u.SetName(name)
	if u.GroupVersionKind() == common[2] && u.GetLabels()[corev1.LabelMetadataName] != "" {
		_ = unstructured.SetNestedField(u.Object, name, "metadata", "labels", corev1.LabelMetadataName)
	}
}
