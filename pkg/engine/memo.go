package engine

import (
	linked "container/list"
	"context"
	"reflect"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/limit"
)

// maxMemo is how many bytes the values of a Memo take, by the estimate of sizeOf.
const maxMemo = 32 << 20

// Memo keeps values by key, so that a caller that asks for one again, meanwhile or
// later, gets it without another request. It drops those that were not asked for the longest
// when they take too much memory, and it is safe for concurrent use. The zero value is empty; a nil
// Memo keeps nothing.
type Memo struct {
	mu      sync.Mutex
	entries map[any]*linked.Element
	used    linked.List // of *memoEntry, the last used first
	size    int         // of all that are there
}

type memoEntry struct {
	key    any
	done   chan struct{} // closed when value and err are there
	value  any
	err    error
	secret bool // a Secret was read for it
	size   int  // in bytes, roughly; 0 while it is on its way
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
		entry.fill(ctx, get)
		if ctx.Err() != nil {
			m.drop(entry)
		} else {
			m.weigh(entry)
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

// Ask is Do for what a server, or another one, is asked: the time that it takes does not count for
// the rules on the object.
func (m *Memo) Ask(ctx context.Context, key any, ask func(context.Context) (any, error)) (answer any, err error) {
	limit.Wait(ctx, func() { answer, err = m.Do(ctx, key, ask) })
	return answer, err
}

func (e *memoEntry) fill(ctx context.Context, get func(context.Context) (any, error)) {
	defer close(e.done)
	ctx, use := WatchSecrets(ctx)
	defer func() { e.secret = use.Any() }()
	e.err = Guard(func() (err error) { e.value, err = get(ctx); return err })
}

// keep stores a value in place of the one that the key has.
func (m *Memo) keep(key, value any) {
	entry := newMemoEntry(key)
	entry.value = value
	close(entry.done)
	m.mu.Lock()
	if old := m.entries[key]; old != nil {
		m.remove(old)
	}
	m.add(entry)
	m.mu.Unlock()
	m.weigh(entry)
}

// kept returns what the key has, if it is there.
func (m *Memo) kept(key any) (entry *memoEntry, ok bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	element := m.entries[key]
	if element == nil {
		return nil, false
	}
	entry = element.Value.(*memoEntry) // it is what was put in
	select {
	case <-entry.done:
		m.used.MoveToFront(element)
		return entry, true
	default: // another object asks for it
		return nil, false
	}
}

func newMemoEntry(key any) *memoEntry { return &memoEntry{key: key, done: make(chan struct{})} }

// claim finds the entry of a key, or makes one that the caller is to fill.
func (m *Memo) claim(key any) (entry *memoEntry, mine bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if known := m.entries[key]; known != nil {
		m.used.MoveToFront(known)
		return known.Value.(*memoEntry), false // it is what was put in
	}
	entry = newMemoEntry(key)
	m.add(entry)
	return entry, true
}

func (m *Memo) add(entry *memoEntry) {
	if m.entries == nil {
		m.entries = map[any]*linked.Element{}
	}
	m.entries[entry.key] = m.used.PushFront(entry)
}

func (m *Memo) remove(element *linked.Element) {
	entry := m.used.Remove(element).(*memoEntry) // it is what was put in
	delete(m.entries, entry.key)
	m.size -= entry.size
}

// weigh counts what an entry takes, and makes room for it: the last used is kept, whatever it takes.
func (m *Memo) weigh(entry *memoEntry) {
	size := entrySize + textIn(reflect.ValueOf(entry.key)) + SizeOf(entry.value)
	if entry.err != nil {
		size += len(entry.err.Error()) // a server's, too
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if element := m.entries[entry.key]; element == nil || element.Value != any(entry) {
		return // dropped meanwhile
	}
	entry.size = size
	m.size += size
	for m.size > maxMemo && m.used.Len() > 1 {
		m.remove(m.used.Back())
	}
}

// drop forgets an entry.
func (m *Memo) drop(entry *memoEntry) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if element := m.entries[entry.key]; element != nil && element.Value == any(entry) {
		m.remove(element)
	}
}

// What is assumed of an entry, and of one value in it.
const (
	entrySize = 512
	valueSize = 64
)

// SizeOf estimates how many bytes a value takes. What is no data, such as a compiled expression, is
// taken to be small.
func SizeOf(value any) int {
	size := valueSize
	switch v := value.(type) {
	case string:
		size += len(v)
	case []byte:
		size += len(v)
	case map[string]any:
		for name, item := range v {
			size += len(name) + SizeOf(item)
		}
	case []any:
		for _, item := range v {
			size += SizeOf(item)
		}
	case *unstructured.Unstructured:
		if v != nil {
			size += SizeOf(v.Object)
		}
	case []*unstructured.Unstructured:
		for _, u := range v {
			size += SizeOf(u)
		}
	case []unstructured.Unstructured:
		for _, u := range v {
			size += SizeOf(u.Object)
		}
	}
	return size
}

// textIn counts the bytes of the texts in a key.
func textIn(key reflect.Value) int {
	switch key.Kind() {
	case reflect.String:
		return key.Len()
	case reflect.Struct:
		size := 0
		for i := range key.NumField() {
			size += textIn(key.Field(i))
		}
		return size
	default:
		return 0
	}
}
