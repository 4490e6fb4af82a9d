// Package variant derives hypothetical objects on which policies behave differently.
//
// It takes the fields and values to vary from the literals of the policies: a policy may read or write a
// schema field that it names, and the values that follow the name matter. So it knows no policy language.
// Variants differ from an object in one place first, then in two. Each is a valid object: those that the
// schema rejects are left out, and so are empty lists and maps where a server drops them.
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

// DefaultLimit is the default number of variants.
const DefaultLimit = 2000

// Options tune a Generator.
type Options struct {
	// Policies are the policies whose literals suggest variations.
	Policies []*unstructured.Unstructured
	// Matches are the objects that the rules match, Requests the subresource requests.
	Matches, Requests []engine.Selection
	// Reader has the schemas, Mapper the kinds.
	Reader engine.Reader
	Mapper meta.RESTMapper
	Seed   uint64
	Limit  int // of variants
	// Named reports that no request is a CREATE, so that every object has a name.
	Named bool
	// Asked evaluates the rules on a variant, and returns the objects that they target or read. It may be nil.
	Asked func(context.Context, Variant) []engine.Selection
}

// Variant is a hypothetical object.
type Variant struct {
	engine.Target
	// Beside are other objects that exist only with it.
	Beside []*unstructured.Unstructured
	// Alone reports that nothing else exists.
	Alone bool

	there bool // it is derived from an existing object
}

// Generator derives variants.
type Generator struct {
	o        Options
	literals *literals
	kinds    map[schema.GroupVersionKind]*kind
	found    map[[3]string]schema.GroupVersionKind // by group, kind and resource; empty if unknown
	untried  int
}

// New returns a generator.
func New(o Options) *Generator {
	return &Generator{
		o: o, literals: newLiterals(o.Policies), kinds: map[schema.GroupVersionKind]*kind{},
		found: map[[3]string]schema.GroupVersionKind{},
	}
}

// Untried counts the single-field differences beyond the limit, once the variants have ended.
func (g *Generator) Untried() int { return g.untried }

// Variants yields the minimal objects of all matched kinds, and then variants of these and of others, first
// with one difference, then with two. There are at most Limit of them, no two alike, and always the same for
// the same seed.
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

// controllers are Pods and their controllers: policies for Pods also apply to them.
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

// common are the kinds that stand for a wildcard.
var common = []schema.GroupVersionKind{ //nolint:gochecknoglobals // an immutable table
	{Version: "v1", Kind: "ConfigMap"},
	{Version: "v1", Kind: "Service"},
	{Version: "v1", Kind: "Namespace"},
	{Version: "v1", Kind: "Node"},
}

// Kinds returns the kinds that the rules match. Rules for Pods or for all kinds may also apply to the
// controllers.
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

// kindOf returns the only kind that a selection names, or an empty one. It asks for each once: a cluster's
// mapper may run a whole discovery for a question.
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
	// an error means that there are none
	kinds, _ := g.o.Mapper.KindsFor(schema.GroupVersionResource{Group: s.Group, Resource: resource})
	for _, gvk := range kinds {
		// a group that servers no longer have
		if gvk.Group != "extensions" && (s.Resource != "" || gvk.Kind == s.Kind) {
			return gvk
		}
	}
	return schema.GroupVersionKind{}
}
