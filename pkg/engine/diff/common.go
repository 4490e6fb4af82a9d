package diff

import (
	"encoding/json"
	"hash/maphash"
	"reflect"
	"sync"

	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// maxCommon is how many parts of changes are kept to be shared.
const maxCommon = 10_000

// Common keeps once what the changes of many objects have in common: a policy does the same to most of them. What it
// hands out must not be changed. The zero value keeps nothing yet. It is safe for concurrent use.
type Common struct {
	mu    sync.Mutex
	seed  maphash.Seed
	parts map[uint64]any
}

// Partial returns an equal Partial that shares its parts with those before it.
func (c *Common) Partial(p Partial) Partial {
	return Partial{Before: Share(c, p.Before), After: Share(c, p.After), Fields: Share(c, p.Fields)}
}

// Share returns an equal value that came before, or else the value itself. It compares those whose JSON is the same.
func Share[T any](c *Common, own T) T {
	if reflect.ValueOf(own).IsZero() {
		return own
	}
	marshal := func() ([]byte, error) { return json.Marshal(own) }
	if set, is := any(own).(*fieldpath.Set); is {
		marshal = set.ToJSON
	}
	text, err := marshal()
	if err != nil {
		return own
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.parts == nil {
		c.seed, c.parts = maphash.MakeSeed(), map[uint64]any{}
	}
	key := maphash.Bytes(c.seed, text)
	known, there := c.parts[key]
	if !there && len(c.parts) < maxCommon {
		c.parts[key] = own
	}
	if equal, same := known.(T); same && reflect.DeepEqual(equal, own) {
		return equal
	}
	return own
}
