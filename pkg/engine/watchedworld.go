package engine

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"iter"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Watched returns a view of a world in which reading a Secret is noted (NoteSecret), and each question is asked once in
// a run, if there is a Memo.
func (w *World) Watched() *World {
	out := *w
	if w.Reader != nil {
		out.Reader = watchedReader{w.Reader, w.Memo, w.Limits.Elements}
	}
	if w.Raw != nil {
		out.Raw = watchedRaw{w.Raw, w.Memo}
	}
	if w.Remote != nil {
		out.Remote = watchedFetcher{w.Remote, w.Memo}
	}
	return &out
}

type (
	objectQuestion ObjectKey
	listQuestion   string
	rawQuestion    struct{ method, path, body string }
	fetchQuestion  struct{ method, url, header, body, caBundle string }
)

func listed(s *Selection) listQuestion {
	labels, _ := json.Marshal(s.Labels) // strings
	return listQuestion(fmt.Sprintf("%q %s", []string{s.Group, s.Version, s.Kind, s.Subresource, s.Resource, s.Namespace, s.Name, s.Fields, s.ReadAs}, labels))
}

func fetched(r *RemoteRequest) fetchQuestion {
	header, _ := json.Marshal(r.Header) // strings, in order
	return fetchQuestion{r.Method, r.URL, string(header), string(r.Body), string(r.CABundle)}
}

type watchedReader struct {
	Reader
	once *Memo // of the run; nil where the same question may have another answer
	most int   // objects of a list that are kept
}

func (r watchedReader) Get(ctx context.Context, key ObjectKey) (*unstructured.Unstructured, error) {
	key.UID = "" // by which nothing is read
	value, err := r.once.Do(ctx, objectQuestion(key), func(ctx context.Context) (any, error) {
		u, err := r.Reader.Get(ctx, key)
		if IsSecret(u) || err == nil && key.IsSecret() {
			NoteSecret(ctx)
		}
		return u, err
	})
	u, _ := value.(*unstructured.Unstructured)
	return u, err
}

func (r watchedReader) List(ctx context.Context, s Selection) iter.Seq2[*unstructured.Unstructured, error] {
	return func(yield func(*unstructured.Unstructured, error) bool) {
		var all []*unstructured.Unstructured
		for u, err := range r.list(ctx, s) {
			if IsSecret(u) {
				NoteSecret(ctx)
			}
			if !yield(u, err) || err != nil {
				return
			}
			if len(all) <= r.most {
				all = append(all, u)
			}
		}
		if r.once != nil && len(all) <= r.most {
			r.once.cache().Add(listed(&s), memoized{value: all})
		}
	}
}

// list lists once in a run what is kept.
func (r watchedReader) list(ctx context.Context, s Selection) iter.Seq2[*unstructured.Unstructured, error] {
	if r.once == nil {
		return r.Reader.List(ctx, s)
	}
	known, ok := r.once.kept(listed(&s))
	if !ok {
		return r.Reader.List(ctx, s)
	}
	return func(yield func(*unstructured.Unstructured, error) bool) {
		all, _ := known.value.([]*unstructured.Unstructured)
		for _, u := range all {
			if !yield(u, nil) {
				return
			}
		}
	}
}

type watchedRaw struct {
	RawReader
	once *Memo
}

func (r watchedRaw) Raw(ctx context.Context, method, path string, body []byte) ([]byte, error) {
	value, err := r.once.Do(ctx, rawQuestion{method, path, string(body)}, func(ctx context.Context) (any, error) {
		answer, err := r.RawReader.Raw(ctx, method, path, body)
		noteSecrets(ctx, answer)
		if p, parsed := ParseAPIPath(path); err == nil && parsed == nil && p.Group == "" && p.Resource == "secrets" {
			NoteSecret(ctx)
		}
		return answer, err
	})
	answer, _ := value.([]byte)
	return answer, err
}

// noteSecrets notes that an answer may hold a Secret, or a list of some.
func noteSecrets(ctx context.Context, answer []byte) {
	if bytes.Contains(answer, []byte(`"Secret`)) {
		NoteSecret(ctx)
	}
}

type watchedFetcher struct {
	Fetcher
	once *Memo
}

func (f watchedFetcher) Fetch(ctx context.Context, r RemoteRequest) ([]byte, error) {
	value, err := f.once.Do(ctx, fetched(&r), func(ctx context.Context) (any, error) {
		answer, err := f.Fetcher.Fetch(ctx, r)
		noteSecrets(ctx, answer)
		return answer, err
	})
	answer, _ := value.([]byte)
	return answer, err
}
