package engine

import (
	"cmp"
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"iter"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"golang.org/x/sync/singleflight"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/klog/v2"
	"k8s.io/utils/lru"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/limit"
)

// World is everything that an evaluation may ask. A nil capability makes a rule that needs it unsupported,
// and the step names the flag that grants it.
type World struct {
	Reader Reader
	Raw    RawReader
	// Existing reads the objects that a run may change, where policies may read others too; nil stands for
	// Reader.
	Existing Reader
	Access   Authorizer
	Remote   Fetcher
	// Registry knows the images that containers run.
	Registry ImageRegistry
	Mapper   meta.RESTMapper
	// Document returns an object as it was read; nil if all are of a cluster.
	Document func(ObjectKey) Document
	// Filtered reports whether Kyverno's resourceFilters exclude an object from its policies; nil without
	// filters.
	Filtered func(ObjectKey) bool
	// Now and Seed are fixed during a run, so that preview and apply agree on clocks and random values.
	Now  time.Time
	Seed uint64
	// Memo keeps, for the whole run, reads for one object that serve others too: each object of a Get is read
	// once. Nil keeps nothing.
	Memo *Memo
	// Lack is notified of missing things that the evaluation needed and took for empty; by several goroutines,
	// and repeatedly. Nil ignores them.
	Lack func(*UnreadableError)
	// Noted is called for each object that a rule reads, or depends on without a request, such as the Namespace
	// of its object; without a name for a list, and with the resource as Kind for a path. It may be nil.
	Noted func(ObjectKey)

	of     *World // the world of this view; nil for none
	secret bool   // in a view: a Secret is used
}

// ReadsExisting returns the Reader of the objects that a run may change.
func (w *World) ReadsExisting() Reader { return cmp.Or(w.Existing, w.Reader) }

// Get reads an object from the Reader, which must not be nil, and returns its error. The time does not count
// for the rule of the context.
func (w *World) Get(ctx context.Context, key ObjectKey) (u *unstructured.Unstructured, err error) {
	limit.Wait(ctx, func() { u, err = w.Reader.Get(ctx, key) })
	return u, err
}

// Schema returns the Reader's schema of a kind: the zero value without a Reader, or with an error if the
// schema cannot be read.
func (w *World) Schema(ctx context.Context, gvk schema.GroupVersionKind) (Schema, error) {
	if w.Reader == nil {
		return Schema{}, nil
	}
	return w.Reader.Schema(ctx, gvk)
}

// RawReader reads paths of the user's own API server that policies choose. Its error is an *UnansweredError
// where only a live server would know the answer.
type RawReader interface {
	Raw(ctx context.Context, method, path string, body []byte) ([]byte, error)
}

// Authorizer decides what a user may do, like the API server. An error says why there is no decision.
type Authorizer interface {
	Authorize(context.Context, AccessRequest) (AccessDecision, error)
}

// AccessRequest is one question to an Authorizer: about Path if set, else about a resource, where an empty
// part stands for all.
type AccessRequest struct {
	// User is the simulated user, or a service account named by a policy; empty for the user whose credentials
	// the run has.
	User UserInfo
	Verb string
	// Path is the path of a request for no resource, such as "/healthz".
	Path                                          string
	Group, Resource, Subresource, Namespace, Name string
	// FieldSelector and LabelSelector narrow a list to a part, in kubectl's syntax.
	FieldSelector, LabelSelector string
}

// AccessDecision is an Authorizer's answer. Reason is the server's, if any, and Error a failure while it
// decided: policies may read both.
type AccessDecision struct {
	Allowed bool
	Reason  string
	Error   string
}

// SeedOf returns the seed of a rule's random values on some objects. It depends only on the run's seed and
// the names, not on the order of the evaluation.
func (w *World) SeedOf(r RuleRef, objects ...ObjectKey) uint64 {
	text := binary.BigEndian.AppendUint64(make([]byte, 0, 256), w.Seed)
	for _, key := range objects {
		for _, name := range []string{r.Policy, r.Rule, key.Group, key.Kind, key.Namespace, key.Name} {
			text = append(append(text, name...), 0)
		}
	}
	h := fnv.New64a()
	_, _ = h.Write(text) // a hash takes everything
	return h.Sum64()
}

// Watched returns a view of a world that notes whether a Secret is read through it, and asks each question
// once in a run, if there is a Memo. A view is for one goroutine. A view of a view notes in both.
func (w *World) Watched() *World {
	out := *w
	out.of, out.secret = w, false
	if w.Reader != nil {
		out.Reader = watched{&out}
	}
	if w.Raw != nil {
		out.Raw = watched{&out}
	}
	if w.Access != nil {
		out.Access = watched{&out}
	}
	if w.Remote != nil {
		out.Remote = watched{&out}
	}
	return &out
}

// NoteSecret notes in a view that a Secret is used: later questions may depend on it.
func (w *World) NoteSecret() {
	for ; w.of != nil; w = w.of {
		w.secret = true
	}
}

// ReadSecret reports whether a Secret is used in a view, not counting its parent.
func (w *World) ReadSecret() bool { return w.secret }

// usesSecret reports whether a question may depend on a Secret.
func (w *World) usesSecret() bool { return w.secret || w.of != nil && w.of.usesSecret() }

// whole returns the world behind all views.
func (w *World) whole() *World {
	for w.of != nil {
		w = w.of
	}
	return w
}

// WithoutLog returns the context of a request that may hold content made from a Secret: client-go takes its
// logger from the context.
func WithoutLog(ctx context.Context) context.Context { return klog.NewContext(ctx, logr.Discard()) }

func (w *World) request(ctx context.Context) context.Context {
	if w.usesSecret() {
		return WithoutLog(ctx)
	}
	return ctx
}

// note notes an object that is read, unless a Secret chose it: its name might be the Secret.
func (w *World) note(key ObjectKey) {
	if w.Noted != nil && !w.usesSecret() {
		w.Noted(key)
	}
}

// Once returns the answer to a question, which get answers at most once in a run, like Memo.Do, in a view of
// the world. A Secret read for it counts for each caller; its time does not count for the rule on the object.
func Once[A any](ctx context.Context, w *World, question any, get func(*World) (A, error)) (A, error) {
	type answer struct {
		value  A
		secret bool
	}
	var known any
	var err error
	limit.Wait(ctx, func() {
		known, err = w.Memo.Do(ctx, question, func(context.Context) (any, error) {
			view := w.Watched()
			value, err := get(view)
			return answer{value, view.secret}, err
		})
	})
	out, ok := known.(answer)
	if !ok || out.secret { // a panic may quote anything
		w.NoteSecret()
	}
	return out.value, err
}

// question is a question as JSON.
type question string

func askedFor(kind string, of any) question {
	text, _ := json.Marshal(of) // it has strings, and types made of strings
	return question(kind + string(text))
}

// watched answers the questions of policies in a view.
type watched struct{ view *World }

// Get implements Reader.
func (w watched) Get(ctx context.Context, key ObjectKey) (*unstructured.Unstructured, error) {
	w.view.note(key)
	key.UID = "" // reads do not use it
	return Once(ctx, w.view, askedFor("get", key), func(view *World) (*unstructured.Unstructured, error) {
		u, err := view.whole().Reader.Get(view.request(ctx), key)
		if IsSecret(u) || err == nil && key.IsSecret() {
			view.NoteSecret()
		}
		return u, err
	})
}

// Schema implements Reader.
func (w watched) Schema(ctx context.Context, gvk schema.GroupVersionKind) (Schema, error) {
	return w.view.whole().Reader.Schema(ctx, gvk)
}

// List implements Reader. A kept list is read once in a run: no more objects than a rule iterates over.
func (w watched) List(ctx context.Context, s Selection) iter.Seq2[*unstructured.Unstructured, error] {
	view := w.view
	view.note(ObjectKey{GroupKind: schema.GroupKind{Group: s.Group, Kind: s.Kind}, Namespace: s.Namespace})
	return func(yield func(*unstructured.Unstructured, error) bool) {
		q := askedFor("list", s)
		hand := func(u *unstructured.Unstructured, err error) bool {
			if IsSecret(u) {
				view.NoteSecret()
			}
			return yield(u, err) && err == nil
		}
		var all []*unstructured.Unstructured
		if known, ok := view.Memo.lookup(q); ok {
			all, _ = known.value.([]*unstructured.Unstructured)
			for _, u := range all {
				if !hand(u, nil) {
					return
				}
			}
			return
		}
		for u, err := range view.whole().Reader.List(view.request(ctx), s) {
			if !hand(u, err) {
				return
			}
			if len(all) <= limit.Elements {
				all = append(all, u)
			}
		}
		if view.Memo != nil && len(all) <= limit.Elements {
			view.Memo.cache().Add(q, memoized{value: all})
		}
	}
}

// Raw implements RawReader.
func (w watched) Raw(ctx context.Context, method, path string, body []byte) ([]byte, error) {
	p, _ := ParseAPIPath(path) // a broken one has no resource
	if method == "GET" && p.Resource != "" {
		w.view.note(ObjectKey{
			GroupKind: schema.GroupKind{Group: p.Group, Kind: p.Resource}, Namespace: p.Namespace, Name: p.Name,
		})
	}
	return Once(ctx, w.view, askedFor("raw", []string{method, path, string(body)}),
		func(view *World) ([]byte, error) {
			answer, err := view.whole().Raw.Raw(view.request(ctx), method, path, body)
			if MayHoldSecret(answer) || err == nil && p.Group == "" && p.Resource == "secrets" {
				view.NoteSecret()
			}
			return answer, err
		})
}

// Authorize implements Authorizer.
func (w watched) Authorize(ctx context.Context, r AccessRequest) (AccessDecision, error) {
	return w.view.whole().Access.Authorize(w.view.request(ctx), r)
}

// Fetch implements Fetcher.
func (w watched) Fetch(ctx context.Context, r RemoteRequest) ([]byte, error) {
	return Once(ctx, w.view, askedFor("fetch", r), func(view *World) ([]byte, error) {
		answer, err := view.whole().Remote.Fetch(view.request(ctx), r)
		if MayHoldSecret(answer) {
			view.NoteSecret()
		}
		return answer, err
	})
}

// mostKept bounds the values of a Memo.
const mostKept = 1 << 10

// Memo keeps values by key, so that a caller that asks again, meanwhile or later, makes no other request. It
// drops the least recently used, and is safe for concurrent use. The zero value is empty; a nil Memo keeps
// nothing.
type Memo struct {
	calls singleflight.Group
	once  sync.Once
	known *lru.Cache // of memoized, by key
}

// memoized is the result of a question.
type memoized struct {
	value any
	err   error
}

func (m *Memo) cache() *lru.Cache {
	m.once.Do(func() { m.known = lru.New(mostKept) })
	return m.known
}

// lookup returns the result of a key, if it is there.
func (m *Memo) lookup(key any) (memoized, bool) {
	if m == nil {
		return memoized{}, false
	}
	found, _ := m.cache().Get(key)
	out, ok := found.(memoized)
	return out, ok
}

// Do returns the value of a key, which get gets at most once while it is kept. Errors are kept as well,
// except for a cancelled context; a panic of get is a *PanicError. Like a context key, the key has a type of
// the caller's own. The value must not be modified. A get must not ask for its own key.
func (m *Memo) Do(ctx context.Context, key any, get func(context.Context) (any, error)) (any, error) {
	if m == nil {
		return get(ctx)
	}
	answer, ok := m.lookup(key)
	if !ok {
		name := fmt.Sprintf("%#v", key)
		shared, _, _ := m.calls.Do(name, func() (any, error) { return m.ask(ctx, key, get), nil })
		answer, _ = shared.(memoized)
	}
	return answer.value, answer.err
}

func (m *Memo) ask(ctx context.Context, key any, get func(context.Context) (any, error)) memoized {
	if known, ok := m.lookup(key); ok { // meanwhile
		return known
	}
	var out memoized
	out.err = Guard(func() (err error) { out.value, err = get(ctx); return err })
	if ctx.Err() == nil {
		m.cache().Add(key, out)
	}
	return out
}

// Cached returns a pure function that keeps its last results for short strings, which many objects share. The
// results must not be modified.
func Cached[V any](get func(string) (V, error)) func(string) (V, error) {
	known := lru.New(256)
	return func(key string) (V, error) {
		if v, ok := known.Get(key); ok {
			return v.(V), nil // nothing else is kept
		}
		v, err := get(key)
		if err == nil && len(key) <= 4<<10 {
			known.Add(key, v)
		}
		return v, err
	}
}

// Fetcher reaches web services beyond the API server; it exists only when a flag
// allows it. It never sends the user's cluster credentials.
type Fetcher interface {
	// Fetch returns the body of a 2xx answer, whose size is limited. Any other answer is an error.
	Fetch(context.Context, RemoteRequest) ([]byte, error)
}

// RemoteRequest is a request to a web service that a policy names.
type RemoteRequest struct {
	Method, URL string
	Header      map[string][]string
	Body        []byte
	// CABundle holds the PEM certificates that verify the service; empty for the system's.
	CABundle []byte
}

// ImageRegistry looks images up in their registries; it exists only when a flag allows it.
type ImageRegistry interface {
	// Image looks up a reference such as "nginx" or "ghcr.io/org/app:v1".
	Image(ctx context.Context, reference string) (Image, error)
}

// Image is a registry's answer about a reference.
type Image struct {
	Registry, Repository string
	Identifier           string // the tag or the digest
	Resolved             string // "REGISTRY/REPOSITORY@sha256:..."
	// ManifestList is the index of the reference, nil where it names only one image. Manifest and Config are of
	// the image for linux/amd64. All are JSON, as in the registry.
	ManifestList, Manifest, Config []byte
}

// UnansweredError is a request that only a live API server could answer.
type UnansweredError struct {
	Method, Path string
	Reason       string
}

// Error names the request and the reason.
func (e *UnansweredError) Error() string {
	return fmt.Sprintf("%s %s cannot be answered without a cluster: %s", e.Method, e.Path, e.Reason)
}
