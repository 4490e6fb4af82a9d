package engine

import (
	"bytes"
	"context"
	"encoding/json"
	"iter"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Watched returns a view of a world in which reading a Secret is noted (NoteSecret), and each question is asked once in
// a run, if there is a Memo.
func (w *World) Watched() *World {
	out := *w
	if w.Reader != nil {
		out.Reader = watched{w}
	}
	if w.Raw != nil {
		out.Raw = watched{w}
	}
	if w.Remote != nil {
		out.Remote = watched{w}
	}
	return &out
}

// question is what is asked, as JSON.
type question string

func asked(kind string, of any) question {
	text, _ := json.Marshal(of) // it has strings, and what is made of some
	return question(kind + string(text))
}

// watched answers the questions of policies from a world.
type watched struct{ of *World }

func (w *World) note(ctx context.Context, key ObjectKey) {
	if w.Noted != nil {
		w.Noted(ctx, key)
	}
}

// ask asks a question once in a run, and notes whether the answer holds a Secret.
func ask[A any](ctx context.Context, w *World, q question, get func(context.Context) (answer A, secret bool, err error)) (A, error) {
	value, err := w.Memo.Do(ctx, q, func(ctx context.Context) (any, error) {
		answer, secret, err := get(ctx)
		if secret {
			NoteSecret(ctx)
		}
		return answer, err
	})
	answer, _ := value.(A)
	return answer, err
}

// Get implements Reader.
func (w watched) Get(ctx context.Context, key ObjectKey) (*unstructured.Unstructured, error) {
	w.of.note(ctx, key)
	key.UID = "" // by which nothing is read
	return ask(ctx, w.of, asked("get", key), func(ctx context.Context) (*unstructured.Unstructured, bool, error) {
		u, err := w.of.Reader.Get(ctx, key)
		return u, IsSecret(u) || err == nil && key.IsSecret(), err
	})
}

// Schema implements Reader.
func (w watched) Schema(ctx context.Context, gvk schema.GroupVersionKind) (Schema, error) {
	return w.of.Reader.Schema(ctx, gvk)
}

// List implements Reader. It lists once in a run what is kept: no more objects than a rule iterates over.
func (w watched) List(ctx context.Context, s Selection) iter.Seq2[*unstructured.Unstructured, error] {
	w.of.note(ctx, ObjectKey{GroupKind: schema.GroupKind{Group: s.Group, Kind: s.Kind}, Namespace: s.Namespace})
	return func(yield func(*unstructured.Unstructured, error) bool) {
		q, most := asked("list", s), w.of.Limits.Elements
		hand := func(u *unstructured.Unstructured, err error) bool {
			if IsSecret(u) {
				NoteSecret(ctx)
			}
			return yield(u, err) && err == nil
		}
		var all []*unstructured.Unstructured
		if known, ok := w.of.Memo.kept(q); ok {
			all, _ = known.value.([]*unstructured.Unstructured)
			for _, u := range all {
				if !hand(u, nil) {
					return
				}
			}
			return
		}
		for u, err := range w.of.Reader.List(ctx, s) {
			if !hand(u, err) {
				return
			}
			if len(all) <= most {
				all = append(all, u)
			}
		}
		if w.of.Memo != nil && len(all) <= most {
			w.of.Memo.cache().Add(q, memoized{value: all})
		}
	}
}

// Raw implements RawReader.
func (w watched) Raw(ctx context.Context, method, path string, body []byte) ([]byte, error) {
	p, _ := ParseAPIPath(path) // a broken one has no resource
	if method == "GET" && p.Resource != "" {
		w.of.note(ctx, ObjectKey{GroupKind: schema.GroupKind{Group: p.Group, Kind: p.Resource}, Namespace: p.Namespace, Name: p.Name})
	}
	return ask(ctx, w.of, asked("raw", []string{method, path, string(body)}), func(ctx context.Context) ([]byte, bool, error) {
		answer, err := w.of.Raw.Raw(ctx, method, path, body)
		return answer, mayHoldSecret(answer) || err == nil && p.Group == "" && p.Resource == "secrets", err
	})
}

// Fetch implements Fetcher.
func (w watched) Fetch(ctx context.Context, r RemoteRequest) ([]byte, error) {
	return ask(ctx, w.of, asked("fetch", r), func(ctx context.Context) ([]byte, bool, error) {
		answer, err := w.of.Remote.Fetch(ctx, r)
		return answer, mayHoldSecret(answer), err
	})
}

// mayHoldSecret reports whether an answer may hold a Secret, or a list of some.
func mayHoldSecret(answer []byte) bool { return bytes.Contains(answer, []byte(`"Secret`)) }
