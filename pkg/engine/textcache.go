package engine

import (
	"strings"
	"sync"
)

// TextCache keeps what texts were parsed to. It is bounded, and safe for concurrent use; the zero
// value is empty and ready.
type TextCache[V any] struct {
	mu      sync.Mutex
	entries map[string]V
	size    int // of all that is kept, where no text is parsed twice at once
}

// Bounds of a cache: texts, and bytes of these and of what they were parsed to.
const (
	maxCached      = 512
	maxCachedBytes = 256 << 10
)

// Do returns what a text is parsed to, at most once while it is kept. Size is about how many bytes
// the value takes beside the text. An error is not kept.
func (c *TextCache[V]) Do(text string, parse func(text string) (value V, size int, err error)) (V, error) {
	c.mu.Lock()
	known, ok := c.entries[text]
	c.mu.Unlock()
	if ok {
		return known, nil
	}
	text = strings.Clone(text) // which may be a part of a large one
	value, size, err := parse(text)
	if size += len(text); err != nil || size > maxCachedBytes {
		return value, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.entries == nil || len(c.entries) >= maxCached || c.size+size > maxCachedBytes {
		c.entries, c.size = make(map[string]V), 0
	}
	c.entries[text] = value
	c.size += size
	return value, nil
}
