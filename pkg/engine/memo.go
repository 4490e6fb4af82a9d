package engine

import (
	"context"
	"fmt"
	"sync"

	"golang.org/x/sync/singleflight"
	"k8s.io/utils/lru"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/limit"
)

// mostKept is how many values a Memo keeps.
const mostKept = 1 << 10

// Memo keeps values by key, so that a caller that asks for one again, meanwhile or
// later, gets it without another request. It drops those that were not asked for the longest,
// and is safe for concurrent use. The zero value is empty; a nil Memo keeps nothing.
type Memo struct {
	calls singleflight.Group
	once  sync.Once
	known *lru.Cache // of memoized, by key
}

// memoized is what came of a question.
type memoized struct {
	value  any
	err    error
	secret bool // a Secret was read for it
}

func (m *Memo) cache() *lru.Cache {
	m.once.Do(func() { m.known = lru.New(mostKept) })
	return m.known
}

// kept returns what the key has, if it is there.
func (m *Memo) kept(key any) (memoized, bool) {
	if m == nil {
		return memoized{}, false
	}
	found, _ := m.cache().Get(key)
	out, ok := found.(memoized)
	return out, ok
}

// Do returns the value of a key, which get gets at most once while it is kept.
// Errors are kept as well, but for those of a cancelled context; a get that panics has a
// *PanicError. The key's type belongs to the caller alone, as that of a context key. The value must not
// be modified. A get must not ask for its own key. That it reads a Secret counts for each caller.
func (m *Memo) Do(ctx context.Context, key any, get func(context.Context) (any, error)) (any, error) {
	if m == nil {
		return get(ctx)
	}
	answer, ok := m.kept(key)
	if !ok {
		shared, _, _ := m.calls.Do(fmt.Sprintf("%#v", key), func() (any, error) { return m.ask(ctx, key, get), nil })
		answer, _ = shared.(memoized)
	}
	if answer.secret {
		NoteSecret(ctx)
	}
	return answer.value, answer.err
}

func (m *Memo) ask(ctx context.Context, key any, get func(context.Context) (any, error)) memoized {
	if known, ok := m.kept(key); ok { // meanwhile
		return known
	}
	inner, use := WatchSecrets(ctx)
	var out memoized
	out.err = Guard(func() (err error) { out.value, err = get(inner); return err })
	if out.secret = use.Any(); ctx.Err() == nil {
		m.cache().Add(key, out)
	}
	return out
}

// Ask is Do for what a server, or another one, is asked: the time that it takes does not count for
// the rules on the object.
func (m *Memo) Ask(ctx context.Context, key any, ask func(context.Context) (any, error)) (answer any, err error) {
	limit.Wait(ctx, func() { answer, err = m.Do(ctx, key, ask) })
	return answer, err
}
