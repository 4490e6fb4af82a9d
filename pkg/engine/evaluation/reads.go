package evaluation

import (
	"cmp"
	"context"
	"iter"
	"maps"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
)

// reads notes what rules read beside the objects of the run, and which objects the run changes: a rule that read
// one of these saw it as it was.
type reads struct {
	mu      sync.Mutex
	objects map[engine.ObjectKey]bool
	lists   map[listed]bool
	paths   map[path]bool

	changed keys
	kinds   map[listed]bool // of these
}

// listed is where objects were listed: all of a kind, in a namespace or in all.
type listed struct {
	schema.GroupKind
	Namespace string
}

// path is that of an object, or of a list, on an API server.
type path struct{ group, resource, namespace, name string }

// observe returns a world whose reads are noted. What a Secret chose is not: its name might be the Secret.
func (r *reads) observe(w *engine.World) *engine.World {
	r.objects, r.lists, r.paths = map[engine.ObjectKey]bool{}, map[listed]bool{}, map[path]bool{}
	r.changed, r.kinds = keys{}, map[listed]bool{}
	out := *w
	if w.Reader != nil {
		out.Reader = notingReader{w.Reader, r}
	}
	if w.Raw != nil {
		out.Raw = notingRaw{w.Raw, r}
	}
	out.Noted = r.object
	return &out
}

func (r *reads) object(ctx context.Context, key engine.ObjectKey) {
	key.Subresource = ""
	note(ctx, &r.mu, r.objects, key.Named())
}

func note[K comparable](ctx context.Context, mu *sync.Mutex, known map[K]bool, one K) {
	if engine.UsesSecret(ctx) {
		return
	}
	mu.Lock()
	defer mu.Unlock()
	known[one] = true
}

// change notes an object that the run changes. It is called by one goroutine.
func (r *reads) change(key engine.ObjectKey) {
	key.Subresource = ""
	r.changed.add(key)
	r.kinds[listed{key.GroupKind, key.Namespace}] = true
}

// outdated lists what rules read and the run changes, in order: objects, and kinds of which they listed some.
func (r *reads) outdated() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	objects, lists := maps.Clone(r.objects), maps.Clone(r.lists)
	for p := range r.paths {
		for k := range r.kinds {
			guess, _ := meta.UnsafeGuessKindToResource(k.WithVersion(""))
			switch {
			case p.group != k.Group || p.resource != guess.Resource:
			case p.name == "":
				lists[listed{k.GroupKind, p.namespace}] = true
			default:
				objects[engine.ObjectKey{GroupKind: k.GroupKind, Namespace: p.namespace, Name: p.name}] = true
			}
		}
	}
	var out []string
	for key := range objects {
		if r.changed.has(key) {
			out = append(out, key.String())
		}
	}
	for l := range lists {
		for k := range r.kinds {
			if l.GroupKind == k.GroupKind && cmp.Or(l.Namespace, k.Namespace) == k.Namespace {
				out = append(out, "the list of "+engine.Selection{Group: k.Group, Kind: k.Kind, Namespace: l.Namespace}.String())
			}
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

type notingReader struct {
	engine.Reader
	reads *reads
}

func (r notingReader) Get(ctx context.Context, key engine.ObjectKey) (*unstructured.Unstructured, error) {
	r.reads.object(ctx, key)
	return r.Reader.Get(ctx, key)
}

func (r notingReader) List(ctx context.Context, s engine.Selection) iter.Seq2[*unstructured.Unstructured, error] {
	note(ctx, &r.reads.mu, r.reads.lists, listed{schema.GroupKind{Group: s.Group, Kind: s.Kind}, s.Namespace})
	return r.Reader.List(ctx, s)
}

type notingRaw struct {
	engine.RawReader
	reads *reads
}

func (r notingRaw) Raw(ctx context.Context, method, target string, body []byte) ([]byte, error) {
	if p, err := engine.ParseAPIPath(target); err == nil && method == "GET" && p.Resource != "" {
		note(ctx, &r.reads.mu, r.reads.paths, path{p.Group, p.Resource, p.Namespace, p.Name})
	}
	return r.RawReader.Raw(ctx, method, target, body)
}
