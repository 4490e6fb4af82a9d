package variant

import (
	"context"
	"encoding/json"
	"iter"
	"slices"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
)

// presentKey is the key of a context under which a variant is there.
type presentKey struct{}

// Present returns a context in which a World of this package has the variant, and its Namespace.
func Present(ctx context.Context, t engine.Target) context.Context {
	return context.WithValue(ctx, presentKey{}, t)
}

// World returns a world in which the variant of the context is there, beside all that another one has. What it
// reads of that it keeps, so that thousands of variants read it once.
func World(w *engine.World) *engine.World {
	out := *w
	out.Existing = nil
	out.Memo = nil // the same question has another answer for another variant
	if w.Reader != nil {
		out.Reader = &reader{Reader: w.Reader, objects: map[engine.ObjectKey]*answer[*unstructured.Unstructured]{}, lists: map[string]*answer[[]*unstructured.Unstructured]{}}
	}
	if w.Raw != nil {
		out.Raw = &rawReader{RawReader: w.Raw, answers: map[string]*answer[[]byte]{}}
	}
	return &out
}

// present returns the variant of a context, and its Namespace.
func present(ctx context.Context) []*unstructured.Unstructured {
	t, ok := ctx.Value(presentKey{}).(engine.Target)
	if !ok {
		return nil
	}
	out := []*unstructured.Unstructured{t.Object}
	if t.Namespace != nil {
		out = append(out, t.Namespace)
	}
	return out
}

// answer is what was read once.
type answer[T any] struct {
	once  sync.Once
	value T
	err   error
}

// maxAnswers bounds the answers that are kept, and maxListed the objects of one of them.
const (
	maxAnswers = 500
	maxListed  = 2000
)

// kept returns the answer of a key; a new one where there is none, and nil where there are too many.
func kept[K comparable, T any](mu *sync.Mutex, answers map[K]*answer[T], key K) *answer[T] {
	mu.Lock()
	defer mu.Unlock()
	if a := answers[key]; a != nil {
		return a
	}
	if len(answers) >= maxAnswers {
		return &answer[T]{}
	}
	a := &answer[T]{}
	answers[key] = a
	return a
}

// reader is a reader that also has the variant of the context.
type reader struct {
	engine.Reader
	mu      sync.Mutex
	objects map[engine.ObjectKey]*answer[*unstructured.Unstructured]
	lists   map[string]*answer[[]*unstructured.Unstructured]
}

// Get implements engine.Reader.
func (r *reader) Get(ctx context.Context, key engine.ObjectKey) (*unstructured.Unstructured, error) {
	if key.Subresource == "" {
		for _, u := range present(ctx) {
			if engine.KeyOf(u).Named() == key.Named() {
				return u, nil
			}
		}
	}
	a := kept(&r.mu, r.objects, key)
	a.once.Do(func() { a.value, a.err = r.Reader.Get(ctx, key) })
	return a.value, a.err
}

// List implements engine.Reader.
func (r *reader) List(ctx context.Context, s engine.Selection) iter.Seq2[*unstructured.Unstructured, error] {
	return func(yield func(*unstructured.Unstructured, error) bool) {
		mine := slices.DeleteFunc(present(ctx), func(u *unstructured.Unstructured) bool { return s.Subresource != "" || !s.Matches(u) })
		for _, u := range mine {
			if !yield(u, nil) {
				return
			}
		}
		a := kept(&r.mu, r.lists, s.String()+s.Version+s.ReadAs)
		a.once.Do(func() {
			for u, err := range r.Reader.List(ctx, s) {
				if a.err = err; err != nil || len(a.value) >= maxListed {
					return
				}
				a.value = append(a.value, u)
			}
		})
		for _, u := range a.value {
			key := engine.KeyOf(u).Named()
			if slices.ContainsFunc(mine, func(own *unstructured.Unstructured) bool { return engine.KeyOf(own).Named() == key }) {
				continue
			}
			if !yield(u, nil) {
				return
			}
		}
		if a.err != nil {
			yield(nil, a.err)
		}
	}
}

// Schema implements engine.Reader.
func (r *reader) Schema(ctx context.Context, gvk schema.GroupVersionKind) (engine.Schema, error) {
	return r.Reader.Schema(ctx, gvk)
}

// rawReader is a raw reader that also has the Namespace of the variant of the context.
type rawReader struct {
	engine.RawReader
	mu      sync.Mutex
	answers map[string]*answer[[]byte]
}

// Raw implements engine.RawReader.
func (r *rawReader) Raw(ctx context.Context, method, path string, body []byte) ([]byte, error) {
	for _, u := range present(ctx) {
		if method == "GET" && u.GetKind() == "Namespace" && path == "/api/v1/namespaces/"+u.GetName() {
			return json.Marshal(u.Object)
		}
	}
	a := kept(&r.mu, r.answers, strings.Join([]string{method, path, string(body)}, "\x00"))
	a.once.Do(func() { a.value, a.err = r.RawReader.Raw(ctx, method, path, body) })
	return a.value, a.err
}
