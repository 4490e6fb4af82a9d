package engine

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utiljson "k8s.io/apimachinery/pkg/util/json"
)

// Watched returns two views of a world. In the first one, reading a Secret is noted
// (NoteSecret). The second one hides the values of all Secrets: what is evaluated in it is
// made without them, so that all of it may be shown. It reads nothing itself, but repeats what the
// first one was answered: what was not asked there depends on a value that is hidden.
func (w *World) Watched() (real, hiding *World) {
	watched, hidden, given := *w, *w, w.Memo
	hidden.Hides, hidden.Lack = true, nil // the first one tells it
	if w.Memo != nil {
		hidden.Memo = &Memo{}
	} else {
		given = &Memo{}
	}
	if w.Reader != nil {
		watched.Reader = watchedReader{Reader: w.Reader, once: w.Memo, given: given, most: w.Limits.Elements}
		hidden.Reader = hidingReader{w.Reader, given}
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

type (
	objectQuestion ObjectKey
	listQuestion   string
	rawQuestion    struct{ method, path, body string }
	fetchQuestion  struct{ method, url, header, body, caBundle string }
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
	once  *Memo // of the run; nil where the same question may have another answer
	given *Memo
	most  int // objects of a list that are kept
}

// Get reads each object once in a run.
func (r watchedReader) Get(ctx context.Context, key ObjectKey) (*unstructured.Unstructured, error) {
	key.UID = "" // by which nothing is read
	value, err := r.once.Do(ctx, objectQuestion(key), func(ctx context.Context) (any, error) {
		u, err := r.Reader.Get(ctx, key)
		if IsSecret(u) {
			NoteSecret(ctx)
		}
		return u, err
	})
	if r.once == nil {
		r.given.keep(objectQuestion(key), value, err)
	}
	u, _ := value.(*unstructured.Unstructured)
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
				r.given.keep(listed(&s), all, err)
				return
			}
			if len(all) <= r.most {
				all = append(all, u)
			}
		}
		if len(all) <= r.most {
			r.given.keep(listed(&s), all, nil)
		}
	}
}

type hidingReader struct {
	Reader // of the schemas
	given  *Memo
}

func (r hidingReader) Get(_ context.Context, key ObjectKey) (*unstructured.Unstructured, error) {
	key.UID = ""
	value, err := r.given.kept(objectQuestion(key))
	u, _ := value.(*unstructured.Unstructured)
	return HideObject(u), err
}

func (r hidingReader) List(_ context.Context, s Selection) iter.Seq2[*unstructured.Unstructured, error] {
	return func(yield func(*unstructured.Unstructured, error) bool) {
		value, err := r.given.kept(listed(&s))
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
	given *Memo
}

func (r watchedRaw) Raw(ctx context.Context, method, path string, body []byte) ([]byte, error) {
	answer, err := r.RawReader.Raw(ctx, method, path, body)
	if bytes.Contains(answer, []byte(`"Secret`)) {
		NoteSecret(ctx)
	}
	r.given.keep(rawQuestion{method, path, string(body)}, answer, err)
	return answer, err
}

type hidingRaw struct{ given *Memo }

func (r hidingRaw) Raw(_ context.Context, method, path string, body []byte) ([]byte, error) {
	value, err := r.given.kept(rawQuestion{method, path, string(body)})
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
	given *Memo
}

func (f watchedFetcher) Fetch(ctx context.Context, r RemoteRequest) ([]byte, error) {
	answer, err := f.Fetcher.Fetch(ctx, r)
	f.given.keep(fetched(&r), answer, err)
	return answer, err
}

type hidingFetcher struct{ given *Memo }

func (f hidingFetcher) Fetch(_ context.Context, r RemoteRequest) ([]byte, error) {
	value, err := f.given.kept(fetched(&r))
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
