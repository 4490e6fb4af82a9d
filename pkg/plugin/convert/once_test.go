package convert

import (
	"context"
	"errors"
	"iter"
	"testing"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
)

// counting is a source of one page, which counts how often it is read.
type counting struct {
	page  engine.Page
	err   error
	reads int
}

func (s *counting) Pages(context.Context, []engine.Selection) iter.Seq2[engine.Page, error] {
	return func(yield func(engine.Page, error) bool) {
		s.reads++
		yield(s.page, s.err)
	}
}

type page int

func (p page) Len() int                        { return int(p) }
func (page) Target(int) (engine.Target, error) { return engine.Target{}, nil }

// A listing is read once; what is not one, is not complete or is too large is read again.
func TestOnce(t *testing.T) {
	pods, maps := []engine.Selection{{Kind: "Pod"}}, []engine.Selection{{Kind: "ConfigMap"}}
	for name, c := range map[string]struct {
		source counting
		want   int
	}{
		"a listing":                        {counting{page: page(100)}, 2},
		"a listing that could not be read": {counting{page: page(100), err: errors.New("refused")}, 5},
		"a large listing":                  {counting{page: page(maxKept/2 + 1)}, 3},
	} {
		t.Run(name, func(t *testing.T) {
			once := readOnce(&c.source)
			for _, selections := range [][]engine.Selection{pods, pods, maps, pods, maps} {
				pages := 0
				for _, err := range once.Pages(t.Context(), selections) {
					if !errors.Is(err, c.source.err) {
						t.Error(err)
					}
					pages++
				}
				if pages != 1 {
					t.Errorf("%d pages", pages)
				}
			}
			if c.source.reads != c.want {
				t.Errorf("read %d times, want %d", c.source.reads, c.want)
			}
		})
	}
}
