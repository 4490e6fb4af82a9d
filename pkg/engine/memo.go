package engine

import (
	"context"
	"sync"
)

// maxMemo is how many values a Memo keeps.
const maxMemo = 256

// Memo keeps values by key, so that a caller that asks for one again, meanwhile or
// later, gets it without another request. It drops the oldest value when there
// are too many, and it is safe for concurrent use. The zero value is empty; a nil
// Memo keeps nothing.
type Memo struct {
	mu      sync.Mutex
	entries map[any]*memoEntry
	order   []any // keys, the oldest first
}

type memoEntry struct {
	done   chan struct{} // closed when value and err are there
	value  any
	err    error
	secret bool // a Secret was read for it
}

// Do returns the value of a key, which get gets at most once while it is kept.
// Errors are kept as well, but for those of a cancelled context; a get that panics has a
// *PanicError. The key's type
// belongs to the caller alone, as that of a context key. The value must not
// be modified. A get must not ask for its own key. That it reads a Secret counts for each
// caller.
func (m *Memo) Do(ctx context.Context, key any, get func(context.Context) (any, error)) (any, error) {
	if m == nil {
		return get(ctx)
	}
	entry, mine := m.claim(key)
	if mine {
		m.fill(ctx, entry, get)
		if ctx.Err() != nil {
			m.drop(key)
		}
	}
	select {
	case <-entry.done:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if entry.secret {
		NoteSecret(ctx)
	}
	return entry.value, entry.err
}

func (m *Memo) fill(ctx context.Context, entry *memoEntry, get func(context.Context) (any, error)) {
	defer close(entry.done)
	ctx, use := WatchSecrets(ctx)
	defer func() { entry.secret = use.Any() }()
	entry.err = Guard(func() (err error) { entry.value, err = get(ctx); return err })
}

// claim finds the entry of a key, or makes one that the caller is to fill.
func (m *Memo) claim(key any) (entry *memoEntry, mine bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if known := m.entries[key]; known != nil {
		return known, false
	}
	if m.entries == nil {
		m.entries = map[any]*memoEntry{}
	}
	if len(m.order) >= maxMemo {
		delete(m.entries, m.order[0])
		m.order = m.order[1:]
	}
	entry = &memoEntry{done: make(chan struct{})}
	m.entries[key] = entry
	m.order = append(m.order, key)
	return entry, true
}

// drop forgets a key; its place in the order is given up when its turn comes.
func (m *Memo) drop(key any) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.entries, key)
}
