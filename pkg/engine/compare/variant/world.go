package variant

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/snapshot"
)

// World makes worlds for variants from another one. It caches all reads, so that thousands of variants read
// it once.
type World struct {
	base *engine.World
	kept *kept
}

// NewWorld returns a world for variants, with the registry of NewRegistry.
func NewWorld(w *engine.World, policies []*unstructured.Unstructured) *World {
	base := *w
	base.Existing, base.Registry = nil, NewRegistry(policies)
	base.Memo = nil // the same question has different answers for different variants
	return &World{base: &base, kept: &kept{reader: w.Reader, raw: w.Raw}}
}

// Reader reads the existing objects, without variants.
func (w *World) Reader() engine.Reader { return w.kept }

// Present has the objects that exist with one variant, and records the requested objects.
type Present struct {
	snapshot.Cluster
	mu      sync.Mutex
	asked   []engine.Selection
	missing []string // the names of missing objects
}

// With returns a world with the variant, its Namespace and its companions.
func (w *World) With(v Variant) (*engine.World, *Present, error) {
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
	objects, err := all.Load(snapshot.Options{Cluster: w.base.Mapper})
	if err != nil {
		return nil, nil, err
	}
	p := &Present{Cluster: objects.Over(w.kept)}
	if v.Alone {
		p.Cluster = only{objects, w.kept}
	}
	out := *w.base
	if out.Reader != nil {
		out.Reader = p
	}
	if out.Raw != nil {
		out.Raw = p
	}
	return &out, p, nil
}

// only is a cluster with no other objects, and the kinds of another one.
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

// maxAsked bounds the recorded questions of a variant.
const maxAsked = 20

// Asked returns the selections that were asked for, each once, and the names of the missing objects among
// them.
func (p *Present) Asked() (asked []engine.Selection, missing []string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.asked), slices.Sorted(slices.Values(p.missing))
}

// ask records a question and its result.
func (p *Present) ask(s engine.Selection, err error) {
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

// Get implements engine.Reader.
func (p *Present) Get(ctx context.Context, key engine.ObjectKey) (*unstructured.Unstructured, error) {
	u, err := p.Cluster.Get(ctx, key)
	p.ask(engine.Selection{
		Group: key.Group, Version: key.Version, Kind: key.Kind,
		Namespace: key.Namespace, Name: key.Name,
	}, err)
	return u, err
}

// List implements engine.Reader.
func (p *Present) List(ctx context.Context, s engine.Selection) iter.Seq2[*unstructured.Unstructured, error] {
	p.ask(s, nil)
	return p.Cluster.List(ctx, s)
}

// Raw implements engine.RawReader.
func (p *Present) Raw(ctx context.Context, method, path string, body []byte) ([]byte, error) {
	answer, err := p.Cluster.Raw(ctx, method, path, body)
	if at, invalid := engine.ParseAPIPath(path); invalid == nil && method == "GET" && at.Resource != "" {
		p.ask(engine.Selection{
			Group: at.Group, Version: at.Version, Resource: at.Resource,
			Namespace: at.Namespace, Name: at.Name,
		}, err)
	}
	return answer, err
}

// kept reads a world and caches its answers.
type kept struct {
	reader  engine.Reader
	raw     engine.RawReader
	answers sync.Map // by question
}

// maxListed bounds the objects of a cached answer.
const maxListed = 2000

// once caches the answer to a question.
func once[T any](k *kept, question string, ask func() (T, error)) (T, error) {
	a, _ := k.answers.LoadOrStore(question, sync.OnceValues(ask))
	return a.(func() (T, error))() // a question has one type of answer
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
