package conversion

import (
	"context"
	"encoding/json"
	"iter"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
)

// maxKept bounds the bytes of the pages that once keeps.
const maxKept = 64 << 20

// once is a source that reads each set of selections once: every form of a policy is compared on the same
// objects. It keeps the pages that know their size, which are those of a cluster; all others are in memory already. What exceeds
// the bound is read again.
type once struct {
	engine.Source
	kept map[string][]engine.Page
	left int
}

func readOnce(s engine.Source) *once {
	return &once{Source: s, kept: map[string][]engine.Page{}, left: maxKept}
}

// bytesOf is the size of the objects of a page as they were read from a server; it is not known of others.
func bytesOf(p engine.Page) (int, bool) {
	for {
		switch of := p.(type) {
		case interface{ Bytes() int }:
			return of.Bytes(), true
		case interface{ Unwrap() engine.Page }:
			p = of.Unwrap()
		default:
			return 0, false
		}
	}
}

// Pages implements engine.Source.
func (s *once) Pages(ctx context.Context, selections []engine.Selection) iter.Seq2[engine.Page, error] {
	text, err := json.Marshal(selections)
	if pages, ok := s.kept[string(text)]; ok && err == nil {
		return func(yield func(engine.Page, error) bool) {
			for _, p := range pages {
				if !yield(p, nil) {
					return
				}
			}
		}
	}
	return func(yield func(engine.Page, error) bool) {
		var pages []engine.Page
		complete, bytes := err == nil, 0
		for p, err := range s.Source.Pages(ctx, selections) {
			n, ok := bytesOf(p)
			bytes += n
			if complete = complete && ok && err == nil && bytes <= s.left; complete {
				pages = append(pages, p)
			} else {
				pages = nil
			}
			if !yield(p, err) {
				return
			}
		}
		if complete && ctx.Err() == nil {
			s.kept[string(text)] = pages
			s.left -= bytes
		}
	}
}
