// Package variant derives objects that are not there, but could be, and on which policies
// act in another way.
//
// What it varies, it finds in the literals of the policies: a field of a kind's schema whose name stands
// in a policy is one that the policy may read or write, and the values that follow that name are
// those that matter. So it knows no policy language. Variants have one difference from an object first, and
// then two. Each is a valid object: what the
// schema refuses is left out, and so are empty lists and maps where a server drops them.
package variant

import (
	"context"
	"iter"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/selector"
)

// DefaultLimit is how many variants are derived where the user does not say.
const DefaultLimit = 2000

// Options tune a Generator.
type Options struct {
	// Policies are those whose literals suggest what to vary.
	Policies []*unstructured.Unstructured
	// Matches are the objects that the rules match, and Requests the requests to subresources.
	Matches, Requests []engine.Selection
	// Reader knows the schemas, and Mapper the kinds.
	Reader engine.Reader
	Mapper meta.RESTMapper
	Seed   uint64
	Limit  int // of variants
	// Named says that there are only requests for objects that have a name: those that are not CREATE.
	Named bool
	// Asked evaluates the rules on a variant, and returns the objects that they ask for: their targets, and
	// what they read. Nil knows nothing of it.
	Asked func(context.Context, Variant) []engine.Selection
}

// Variant is an object that is not there, but could be.
type Variant struct {
	engine.Target
	// Beside are other objects that are there with it, and not without it.
	Beside []*unstructured.Unstructured
	// Alone says that nothing else is there.
	Alone bool

	there bool // it is derived from an object that is there
}

// Generator derives variants.
type Generator struct {
	o        Options
	literals *literals
	kinds    map[schema.GroupVersionKind]*kind
	found    map[[3]string]schema.GroupVersionKind // by group, kind and resource; empty where there is none
	untried  int
}

// New returns a generator.
func New(o Options) *Generator {
	return &Generator{
		o: o, literals: newLiterals(o.Policies), kinds: map[schema.GroupVersionKind]*kind{},
		found: map[[3]string]schema.GroupVersionKind{},
	}
}

// Untried counts the differences of one field that the limit had no place for, when the variants have ended.
func (g *Generator) Untried() int { return g.untried }

// Variants yields the minimal objects of all kinds that the rules match, and then variants of these and of
// others, first with one difference each, then with two. There are no more of them than the limit,
// no two alike, and always the same for the same seed.
func (g *Generator) Variants(ctx context.Context, others []engine.Target) iter.Seq[Variant] {
	return func(yield func(Variant) bool) {
		s := &stream{Generator: g, ctx: ctx, seen: map[uint64]bool{}, yield: yield, left: g.o.Limit}
		bases := g.bases(ctx, others)
		for _, base := range bases {
			if !s.emit(base) {
				return
			}
		}
		s.pairs(s.singles(bases))
	}
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
	{Version: "v1", Kind: "ConfigMap"},
	{Version: "v1", Kind: "Service"},
	{Version: "v1", Kind: "Namespace"},
	{Version: "v1", Kind: "Node"},
}

// Kinds are the kinds of objects that the rules match. A rule for Pods, or for all kinds, may be applied
// to their controllers.
func (g *Generator) Kinds() []schema.GroupVersionKind {
	var out []schema.GroupVersionKind
	for _, s := range g.o.Matches {
		for _, gvk := range slices.Concat(controllers, common) {
			if mapping, err := g.o.Mapper.RESTMapping(gvk.GroupKind(), gvk.Version); err == nil &&
				selects(s, gvk, mapping) {
				out = append(out, gvk)
			}
		}
		if gvk := g.kindOf(s); !gvk.Empty() {
			out = append(out, gvk)
		}
	}
	if slices.ContainsFunc(out,
		func(gvk schema.GroupVersionKind) bool { return slices.Contains(controllers, gvk) }) {
		out = append(out, controllers...)
	}
	return engine.Distinct(out)
}

func selects(s engine.Selection, gvk schema.GroupVersionKind, mapping *meta.RESTMapping) bool {
	return s.MatchesKind(engine.ObjectKey{GroupKind: gvk.GroupKind()}) &&
		s.MatchesResource(mapping.Resource.Resource)
}

// kindOf is the one kind that a selection names; empty where there is none. It asks for each once: the mapper
// of a cluster reads all that this serves for a question.
func (g *Generator) kindOf(s engine.Selection) schema.GroupVersionKind {
	key := [...]string{s.Group, s.Kind, s.Resource}
	if _, known := g.found[key]; !known {
		g.found[key] = g.findKind(s)
	}
	return g.found[key]
}

func (g *Generator) findKind(s engine.Selection) schema.GroupVersionKind {
	if selector.HasWildcard(s.Group) {
		s.Group = ""
	}
	resource := s.Resource
	if resource == "" || selector.HasWildcard(resource) {
		if s.Kind == "" || selector.HasWildcard(s.Kind) {
			return schema.GroupVersionKind{}
		}
		if mapping, err := g.o.Mapper.RESTMapping(schema.GroupKind{Group: s.Group, Kind: s.Kind}); err == nil {
			return mapping.GroupVersionKind
		}
		resource = strings.ToLower(s.Kind)
	}
	// an error says that there are none
	kinds, _ := g.o.Mapper.KindsFor(schema.GroupVersionResource{Group: s.Group, Resource: resource})
	for _, gvk := range kinds {
		// a group that no server has any more
		if gvk.Group != "extensions" && (s.Resource != "" || gvk.Kind == s.Kind) {
			return gvk
		}
	}
	return schema.GroupVersionKind{}
}
