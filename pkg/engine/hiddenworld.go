package engine

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
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
	known := answers{once: w.Memo, given: given}
	if w.Reader != nil {
		watched.Reader = watchedReader{w.Reader, known, w.Limits.Elements}
		hidden.Reader = hidingReader{w.Reader, given}
	}
	if w.Raw != nil {
		watched.Raw, hidden.Raw = watchedRaw{w.Raw, known}, hidingRaw{given}
	}
	if w.Remote != nil {
		watched.Remote, hidden.Remote = watchedFetcher{w.Remote, known}, hidingFetcher{given}
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

type ownAnswersKey struct{}

// WithOwnAnswers returns a context under which a question that is asked of a world may have another answer than under others. So what is
// evaluated under it repeats, in the view that hides, what was answered under it alone.
func WithOwnAnswers(ctx context.Context) context.Context {
	return context.WithValue(ctx, ownAnswersKey{}, &Memo{})
}

// answersOf are the answers of a context, if it has its own, or else all others.
func answersOf(ctx context.Context, others *Memo) *Memo {
	if own, ok := ctx.Value(ownAnswersKey{}).(*Memo); ok {
		return own
	}
	return others
}

// answers are those that the first of two views was given.
type answers struct {
	once  *Memo // of the run; nil where the same question may have another answer
	given *Memo
}

// ask asks each question once in a run, whoever asks it.
func (a answers) ask(ctx context.Context, question any, ask func(context.Context) (any, error)) (any, error) {
	value, err := a.once.Do(ctx, question, ask)
	if a.once == nil {
		answersOf(ctx, a.given).keep(question, value, err)
	}
	return value, err
}

type watchedReader struct {
	Reader
	answers
	most int // objects of a list that are kept
}

func (r watchedReader) Get(ctx context.Context, key ObjectKey) (*unstructured.Unstructured, error) {
	key.UID = "" // by which nothing is read
	value, err := r.ask(ctx, objectQuestion(key), func(ctx context.Context) (any, error) {
		u, err := r.Reader.Get(ctx, key)
		if IsSecret(u) {
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
			if !yield(u, err) {
				return
			}
			if err != nil {
				answersOf(ctx, r.given).keep(listed(&s), all, err)
				return
			}
			if len(all) <= r.most {
				all = append(all, u)
			}
		}
		if len(all) <= r.most {
			answersOf(ctx, r.given).keep(listed(&s), all, nil)
		}
	}
}

// list lists once in a run what is kept.
func (r watchedReader) list(ctx context.Context, s Selection) iter.Seq2[*unstructured.Unstructured, error] {
	if r.once != nil {
		if value, err := r.once.kept(listed(&s)); !errors.Is(err, ErrHidden) {
			return replayed(value, err)
		}
	}
	return r.Reader.List(ctx, s)
}

// replayed is a listing that was kept.
func replayed(value any, err error) iter.Seq2[*unstructured.Unstructured, error] {
	return func(yield func(*unstructured.Unstructured, error) bool) {
		all, _ := value.([]*unstructured.Unstructured)
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

type hidingReader struct {
	Reader // of the schemas
	given  *Memo
}

func (r hidingReader) Get(ctx context.Context, key ObjectKey) (*unstructured.Unstructured, error) {
	key.UID = ""
	value, err := answersOf(ctx, r.given).kept(objectQuestion(key))
	u, _ := value.(*unstructured.Unstructured)
	return HideObject(u), err
}

func (r hidingReader) List(ctx context.Context, s Selection) iter.Seq2[*unstructured.Unstructured, error] {
	return func(yield func(*unstructured.Unstructured, error) bool) {
		for u, err := range replayed(answersOf(ctx, r.given).kept(listed(&s))) {
			if !yield(HideObject(u), err) {
				return
			}
		}
	}
}

type watchedRaw struct {
	RawReader
	answers
}

func (r watchedRaw) Raw(ctx context.Context, method, path string, body []byte) ([]byte, error) {
	value, err := r.ask(ctx, rawQuestion{method, path, string(body)}, func(ctx context.Context) (any, error) {
		answer, err := r.RawReader.Raw(ctx, method, path, body)
		if bytes.Contains(answer, []byte(`"Secret`)) {
			NoteSecret(ctx)
		}
		return answer, err
	})
	answer, _ := value.([]byte)
	return answer, err
}

type hidingRaw struct{ given *Memo }

func (r hidingRaw) Raw(ctx context.Context, method, path string, body []byte) ([]byte, error) {
	value, err := answersOf(ctx, r.given).kept(rawQuestion{method, path, string(body)})
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
	answers
}

func (f watchedFetcher) Fetch(ctx context.Context, r RemoteRequest) ([]byte, error) {
	value, err := f.ask(ctx, fetched(&r), func(ctx context.Context) (any, error) { return f.Fetcher.Fetch(ctx, r) })
	answer, _ := value.([]byte)
	return answer, err
}

type hidingFetcher struct{ given *Memo }

func (f hidingFetcher) Fetch(ctx context.Context, r RemoteRequest) ([]byte, error) {
	value, err := answersOf(ctx, f.given).kept(fetched(&r))
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
