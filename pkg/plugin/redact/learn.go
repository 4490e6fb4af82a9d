package redact

import (
	"bytes"
	"context"
	"encoding/json"
	"iter"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
)

// Reader is a reader whose Secrets are learned as they are read. It stays nil
// where there is none.
func (m *Masker) Reader(r engine.Reader) engine.Reader {
	if m == nil || r == nil {
		return r
	}
	return &reader{Reader: r, masker: m}
}

// RawReader is a RawReader whose answers are searched for Secrets.
func (m *Masker) RawReader(r engine.RawReader) engine.RawReader {
	if m == nil || r == nil {
		return r
	}
	return &rawReader{RawReader: r, masker: m}
}

// Source is a source whose Secrets are learned as they are decoded.
func (m *Masker) Source(s engine.Source) engine.Source {
	if m == nil || s == nil {
		return s
	}
	return &source{Source: s, masker: m}
}

type reader struct {
	engine.Reader
	masker *Masker
}

func (r *reader) Get(ctx context.Context, key engine.ObjectKey) (*unstructured.Unstructured, error) {
	u, err := r.Reader.Get(ctx, key)
	r.masker.Learn(u)
	return u, err
}

func (r *reader) List(ctx context.Context, s engine.Selection) iter.Seq2[*unstructured.Unstructured, error] {
	return func(yield func(*unstructured.Unstructured, error) bool) {
		for u, err := range r.Reader.List(ctx, s) {
			r.masker.Learn(u)
			if !yield(u, err) {
				return
			}
		}
	}
}

type rawReader struct {
	engine.RawReader
	masker *Masker
}

func (r *rawReader) Raw(ctx context.Context, method, path string, body []byte) ([]byte, error) {
	answer, err := r.RawReader.Raw(ctx, method, path, body)
	if err == nil && bytes.Contains(answer, []byte(`"Secret`)) {
		r.masker.learnJSON(answer)
	}
	return answer, err
}

// learnJSON learns a Secret, or a list of them, from an API server's answer. The
// elements of a list need not say what they are: the list does.
func (m *Masker) learnJSON(answer []byte) {
	var list struct {
		Kind  string           `json:"kind"`
		Items []map[string]any `json:"items"`
	}
	var object map[string]any
	if json.Unmarshal(answer, &object) != nil || json.Unmarshal(answer, &list) != nil {
		return
	}
	m.Learn(&unstructured.Unstructured{Object: object})
	for _, item := range list.Items {
		if item != nil && list.Kind == "SecretList" {
			item["apiVersion"], item["kind"] = "v1", "Secret"
		}
		m.Learn(&unstructured.Unstructured{Object: item})
	}
}

type source struct {
	engine.Source
	masker *Masker
}

func (s *source) Pages(ctx context.Context, selections []engine.Selection) iter.Seq2[engine.Page, error] {
	return func(yield func(engine.Page, error) bool) {
		for p, err := range s.Source.Pages(ctx, selections) {
			if p != nil {
				p = &page{Page: p, masker: s.masker}
			}
			if !yield(p, err) {
				return
			}
		}
	}
}

type page struct {
	engine.Page
	masker *Masker
}

// Unwrap returns the page as it was read.
func (p page) Unwrap() engine.Page { return p.Page }

func (p *page) Target(i int) (engine.Target, error) {
	t, err := p.Page.Target(i)
	p.masker.Learn(t.Object)
	if t.OldObject != t.Object {
		p.masker.Learn(t.OldObject)
	}
	return t, err
}
