package watch

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
)

// Readiness says whether all of some followers follow. It is safe for concurrent use. Of the zero value it is not known who they are.
type Readiness struct {
	mu  sync.Mutex
	why map[*Follower]error // that is not ready; nil of one that is
}

// Track has it say that of these followers, which do not watch yet, in place of others.
func (r *Readiness) Track(followers []*Follower) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.why = map[*Follower]error{}
	for _, f := range followers {
		r.why[f] = fmt.Errorf("%s: not watched yet", f)
		f.State = r.set
	}
}

func (r *Readiness) set(f *Follower, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, tracked := r.why[f]; !tracked {
		return
	}
	if err != nil {
		err = fmt.Errorf("%s: %w", f, err)
	}
	r.why[f] = err
}

// errNotBegun is why nothing is ready that is not known yet.
var errNotBegun = errors.New("what is to be watched is not known yet")

// Err is why one of them does not follow, the first by name; nil if all do.
func (r *Readiness) Err() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.why == nil {
		return errNotBegun
	}
	var all []error
	for _, err := range r.why {
		if err != nil {
			all = append(all, err)
		}
	}
	if len(all) == 0 {
		return nil
	}
	return slices.MinFunc(all, func(a, b error) int { return strings.Compare(a.Error(), b.Error()) })
}
