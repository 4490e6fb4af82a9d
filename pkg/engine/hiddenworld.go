package engine

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utiljson "k8s.io/apimachinery/pkg/util/json"
)

// Watched returns two views of a world. In the first one, reading a Secret is noted
// (NoteSecret). The second one hides the values of all Secrets: what is evaluated in it is
// made without them, so that all of it may be shown. It reads nothing itself, but repeats what the
// first one was answered: what was not asked there depends on a value that is hidden.
func (w *World) Watched() (real, hiding *World) {
	watched, hidden, given := *w, *w, &answers{}
	hidden.Hides, hidden.Lack = true, nil // the first one tells it
	if w.Memo != nil {
		hidden.Memo = &Memo{}
	}
	if w.Reader != nil {
		watched.Reader, hidden.Reader = watchedReader{w.Reader, given, w.Limits.Elements}, hidingReader{w.Reader, given}
	}
	if w.Raw != nil {
		watched.Raw, hidden.Raw = watchedRaw{w.Raw, given}, hidingRaw{given}
	}
	if w.Remote != nil {
		watched.Remote, hidden.Remote = watchedFetcher{w.Remote, given}, hidingFetcher{given}
	}
	if w.Registry != nil {
		hidden.Registry = hidingRegistry{w.Registry}
	}
	if w.Access != nil {
		hidden.Access = hidingAuthorizer{w.Access}
	}
	return &watched, &hidden
}

// answers are what a world was answered last, by question. The oldest are dropped where there are more
// than a Memo would keep, or where they take too much memory. They are safe for concurrent use.
type answers struct {
	mu    sync.Mutex
	given map[any]answer
	order []any
	size  int // of all of them
}

type answer struct {
	value any
	err   error
	size  int // in bytes, roughly
}

// The bounds of answers, in bytes.
const (
	maxAnswers = 64 << 20
	objectSize = 10 << 10 // what is assumed of an object
)

// keep stores an answer of so many bytes.
func (a *answers) keep(question, value any, err error, size int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.given == nil {
		a.given = map[any]answer{}
	}
	if i := slices.Index(a.order, question); i >= 0 {
		a.order = slices.Delete(a.order, i, i+1)
	}
	a.order = append(a.order, question)
	a.size += size - a.given[question].size
	a.given[question] = answer{value, err, size}
	for len(a.order) > maxMemo || a.size > maxAnswers && len(a.order) > 1 {
		a.size -= a.given[a.order[0]].size
		delete(a.given, a.order[0])
		a.order = a.order[1:]
	}
}

// to returns the answer to a question, or ErrHidden.
func (a *answers) to(question any) (any, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	known, ok := a.given[question]
	if !ok {
		return nil, ErrHidden
	}
	return known.value, known.err
}

type (
	listQuestion  string
	rawQuestion   struct{ method, path, body string }
	fetchQuestion struct{ method, url, header, body, caBundle string }
)

func listed(s *Selection) listQuestion {
	labels, _ := json.Marshal(s.Labels) // texts
	return listQuestion(fmt.Sprintf("%q %s", []string{s.Group, s.Version, s.Kind, s.Subresource, s.Resource, s.Namespace, s.Name, s.Fields, s.ReadAs}, labels))
}

func fetched(r *RemoteRequest) fetchQuestion {
	header, _ := json.Marshal(r.Header) // texts, in order
	return fetchQuestion{r.Method, r.URL, string(header), string(r.Body), string(r.CABundle)}
}

type watchedReader struct {
	Reader
	given *answers
	most  int // objects of a list that are kept
}

func (r watchedReader) Get(ctx context.Context, key ObjectKey) (*unstructured.Unstructured, error) {
	u, err := r.Reader.Get(ctx, key)
	if IsSecret(u) {
		NoteSecret(ctx)
	}
	r.given.keep(key, u, err, objectSize)
	return u, err
}

func (r watchedReader) List(ctx context.Context, s Selection) iter.Seq2[*unstructured.Unstructured, error] {
	return func(yield func(*unstructured.Unstructured, error) bool) {
		var all []*unstructured.Unstructured
		for u, err := range r.Reader.List(ctx, s) {
			if IsSecret(u) {
				NoteSecret(ctx)
			}
			if !yield(u, err) {
				return
			}
			if err != nil {
				r.given.keep(listed(&s), all, err, len(all)*objectSize)
				return
			}
			if len(all) <= r.most {
				all = append(all, u)
			}
		}
		if len(all) <= r.most {
			r.given.keep(listed(&s), all, nil, len(all)*objectSize)
		}
	}
}

type hidingReader struct {
	Reader // of the schemas
	given  *answers
}

func (r hidingReader) Get(_ context.Context, key ObjectKey) (*unstructured.Unstructured, error) {
	value, err := r.given.to(key)
	u, _ := value.(*unstructured.Unstructured)
	return HideObject(u), err
}

func (r hidingReader) List(_ context.Context, s Selection) iter.Seq2[*unstructured.Unstructured, error] {
	return func(yield func(*unstructured.Unstructured, error) bool) {
		value, err := r.given.to(listed(&s))
		all, _ := value.([]*unstructured.Unstructured)
		for _, u := range all {
			if !yield(HideObject(u), nil) {
				return
			}
		}
		if err != nil {
			yield(nil, err)
		}
	}
}

type watchedRaw struct {
	RawReader
	given *answers
}

func (r watchedRaw) Raw(ctx context.Context, method, path string, body []byte) ([]byte, error) {
	answer, err := r.RawReader.Raw(ctx, method, path, body)
	if bytes.Contains(answer, []byte(`"Secret`)) {
		NoteSecret(ctx)
	}
	r.given.keep(rawQuestion{method, path, string(body)}, answer, err, len(answer))
	return answer, err
}

type hidingRaw struct{ given *answers }

func (r hidingRaw) Raw(_ context.Context, method, path string, body []byte) ([]byte, error) {
	value, err := r.given.to(rawQuestion{method, path, string(body)})
	answer, _ := value.([]byte)
	if err != nil || !bytes.Contains(answer, []byte(`"Secret`)) {
		return answer, err
	}
	var decoded any
	if err := utiljson.Unmarshal(answer, &decoded); err != nil {
		return nil, ErrHidden
	}
	return json.Marshal(HideSecrets(decoded))
}

type watchedFetcher struct {
	Fetcher
	given *answers
}

func (f watchedFetcher) Fetch(ctx context.Context, r RemoteRequest) ([]byte, error) {
	answer, err := f.Fetcher.Fetch(ctx, r)
	f.given.keep(fetched(&r), answer, err, len(answer))
	return answer, err
}

type hidingFetcher struct{ given *answers }

func (f hidingFetcher) Fetch(_ context.Context, r RemoteRequest) ([]byte, error) {
	value, err := f.given.to(fetched(&r))
	answer, _ := value.([]byte)
	return answer, err
}

type hidingRegistry struct{ ImageRegistry }

func (r hidingRegistry) Image(ctx context.Context, reference string) (Image, error) {
	if IsHidden(reference) {
		return Image{}, ErrHidden
	}
	return r.ImageRegistry.Image(ctx, reference)
}

type hidingAuthorizer struct{ Authorizer }

func (a hidingAuthorizer) Authorize(ctx context.Context, r AccessRequest) (AccessDecision, error) {
	asks := append(slices.Clone(r.User.Groups), r.User.Username, r.Verb, r.Path, r.Group, r.Resource, r.Subresource, r.Namespace, r.Name, r.FieldSelector, r.LabelSelector)
	if IsHidden(strings.Join(asks, "\n")) {
		return AccessDecision{}, ErrHidden
	}
	return a.Authorizer.Authorize(ctx, r)
}
