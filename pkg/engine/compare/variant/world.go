package variant

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/snapshot"
)

// World is a world in which, for each evaluation, a variant is there beside all that another world has. What
// it reads of that it keeps, so that thousands of variants read it once.
type World struct {
	mapper meta.RESTMapper
	kept   *kept
}

// NewWorld returns a world for variants, and the same for programs. Its registry is that of NewRegistry.
func NewWorld(w *engine.World, policies []*unstructured.Unstructured) (*World, *engine.World) {
	k := &kept{reader: w.Reader, raw: w.Raw}
	out := *w
	out.Existing = nil
	out.Registry = NewRegistry(policies)
	out.Memo = nil // the same question has another answer for another variant
	if w.Reader != nil {
		out.Reader = reader{k}
	}
	if w.Raw != nil {
		out.Raw = reader{k}
	}
	return &World{mapper: w.Mapper, kept: k}, &out
}

// Reader reads what is there beside variants.
func (w *World) Reader() engine.Reader { return w.kept }

// presentKey is the key of a context under which a presence is.
type presentKey struct{}

// presence is the part of a world that is of one variant.
type presence struct {
	world   snapshot.Cluster
	mu      sync.Mutex
	asked   []engine.Selection
	missing []string // those of them that name an object which is not there
}

// With returns a context in which the variant is there, its Namespace, and what is beside it.
func (w *World) With(ctx context.Context, v Variant) (context.Context, error) {
	var all snapshot.Loader
	for _, u := range v.Beside {
		all.AddWorld(engine.NewDocument(u, ""))
	}
	if v.Namespace != nil {
		all.AddWorld(engine.NewDocument(v.Namespace, ""))
	}
	if v.Key.Subresource == "" || engine.KeyOf(v.Object).GroupKind == v.Key.GroupKind {
		all.Add(engine.NewDocument(v.Object, ""))
	}
	objects, err := all.Load(snapshot.Options{Cluster: w.mapper})
	if err != nil {
		return nil, err
	}
	p := &presence{world: objects.Over(w.kept)}
	if v.Alone {
		p.world = only{objects, w.kept}
	}
	return context.WithValue(ctx, presentKey{}, p), nil
}

// only is a cluster with some objects and no others, that knows the kinds of another one.
type only struct {
	*snapshot.Snapshot
	kept *kept
}

// Schema implements engine.Reader.
func (o only) Schema(ctx context.Context, gvk schema.GroupVersionKind) (engine.Schema, error) {
	return o.kept.Schema(ctx, gvk)
}

// Raw implements engine.RawReader.
func (o only) Raw(ctx context.Context, method, path string, body []byte) ([]byte, error) {
	if at, err := engine.ParseAPIPath(path); err == nil && method == "GET" && at.Resource != "" {
		return o.Snapshot.Raw(ctx, method, path, body)
	}
	return o.kept.Raw(ctx, method, path, body)
}

// maxAsked bounds what is kept of the questions of one variant.
const maxAsked = 20

// Asked returns which objects have been asked for in a context of World.With, each selection once, and names
// those that have been asked for by their names and are not there.
func Asked(ctx context.Context) (asked []engine.Selection, missing []string) {
	p := reader{}.of(ctx)
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.asked), slices.Sorted(slices.Values(p.missing))
}

// ask notes a question, and what came of it.
func (p *presence) ask(s engine.Selection, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	text := s.String()
	known := slices.ContainsFunc(p.asked, func(k engine.Selection) bool { return k.String() == text })
	if known || len(p.asked) == maxAsked {
		return
	}
	p.asked = append(p.asked, s)
	if s.Name != "" && apierrors.IsNotFound(err) {
		p.missing = append(p.missing, text)
	}
}

// reader reads the variant of the context, and what is kept of another world.
type reader struct{ *kept }

// of is the presence of a context; one in what is kept where it has none.
func (r reader) of(ctx context.Context) *presence {
	if p, ok := ctx.Value(presentKey{}).(*presence); ok {
		return p
	}
	return &presence{world: r.kept}
}

// Get implements engine.Reader.
func (r reader) Get(ctx context.Context, key engine.ObjectKey) (*unstructured.Unstructured, error) {
	p := r.of(ctx)
	u, err := p.world.Get(ctx, key)
	p.ask(engine.Selection{
		Group: key.Group, Version: key.Version, Kind: key.Kind,
		Namespace: key.Namespace, Name: key.Name,
	}, err)
	return u, err
}

// List implements engine.Reader.
func (r reader) List(ctx context.Context, s engine.Selection) iter.Seq2[*unstructured.Unstructured, error] {
	p := r.of(ctx)
	p.ask(s, nil)
	return p.world.List(ctx, s)
}

// Raw implements engine.RawReader.
func (r reader) Raw(ctx context.Context, method, path string, body []byte) ([]byte, error) {
	p := r.of(ctx)
	answer, err := p.world.Raw(ctx, method, path, body)
	if at, invalid := engine.ParseAPIPath(path); invalid == nil && method == "GET" && at.Resource != "" {
		p.ask(engine.Selection{
			Group: at.Group, Version: at.Version, Resource: at.Resource,
			Namespace: at.Namespace, Name: at.Name,
		}, err)
	}
	return answer, err
}

// kept reads a world, and keeps what it has answered.
type kept struct {
	reader  engine.Reader
	raw     engine.RawReader
	answers sync.Map // by question
}

// maxListed bounds the objects of one answer.
const maxListed = 2000

// once returns the answer to a question that was asked once.
func once[T any](k *kept, question string, ask func() (T, error)) (T, error) {
	a, _ := k.answers.LoadOrStore(question, sync.OnceValues(ask))
	return a.(func() (T, error))() // a question has one sort of answer
}

// Get implements engine.Reader.
func (k *kept) Get(ctx context.Context, key engine.ObjectKey) (*unstructured.Unstructured, error) {
	return once(k, fmt.Sprintf("get %q", key),
		func() (*unstructured.Unstructured, error) { return k.reader.Get(ctx, key) })
}

// List implements engine.Reader.
func (k *kept) List(ctx context.Context, s engine.Selection) iter.Seq2[*unstructured.Unstructured, error] {
	return func(yield func(*unstructured.Unstructured, error) bool) {
		question := fmt.Sprintf("list %s %q", s, []any{s.Group, s.Version, s.Resource, s.ReadAs, s.Fields})
		all, err := once(k, question, func() (all []*unstructured.Unstructured, err error) {
			for u, err := range k.reader.List(ctx, s) {
				if err != nil || len(all) == maxListed {
					return all, err
				}
				all = append(all, u)
			}
			return all, nil
		})
		for _, u := range all {
			if !yield(u, nil) {
				return
			}
		}
		if err != nil {
			yield(nil, err)
		}
	}
}

// Schema implements engine.Reader.
func (k *kept) Schema(ctx context.Context, gvk schema.GroupVersionKind) (engine.Schema, error) {
	return k.reader.Schema(ctx, gvk)
}

// Raw implements engine.RawReader.
func (k *kept) Raw(ctx context.Context, method, path string, body []byte) ([]byte, error) {
	if k.raw == nil {
		return nil, apierrors.NewNotFound(schema.GroupResource{}, path)
	}
	return once(k, fmt.Sprintf("raw %s %s\x00%s", method, path, body),
		func() ([]byte, error) { return k.raw.Raw(ctx, method, path, body) })
}
