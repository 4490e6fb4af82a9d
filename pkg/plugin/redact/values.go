package redact

import (
	"strings"
	"sync"
	"sync/atomic"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
)

const (
	// window is how many bytes of a value are looked up at once, and so the
	// shortest value that is found inside another text.
	window = 6
	// shortest is the length from which a value is masked at all.
	shortest = 3
	// headLength bounds what is kept of a value, and what is compared: a text that
	// agrees with so much of it is masked for the value's whole length.
	headLength = 256
)

// trivial values are words that are in every object: they do not show that they come
// from a Secret.
var trivial = map[string]bool{ //nolint:gochecknoglobals // an immutable table
	"true": true, "false": true, "yes": true, "no": true, "on": true, "off": true,
	"null": true, "none": true, "nil": true, "default": true, "enabled": true, "disabled": true,
}

// maxRemembered bounds what is remembered, in bytes: a run that goes on for weeks meets ever new values. When
// so many were learned, those are forgotten that were not learned since it was so many the last time.
const maxRemembered = 64 << 20

// values is a set of texts and finds them inside others. It costs one
// look-up for each byte of a text, whatever the number of values, so that a run
// which meets a Secret between any two objects never rebuilds anything.
type values struct {
	some        atomic.Bool // there is one
	mu          sync.RWMutex
	now, before generation
}

// generation are the values that were learned in a time.
type generation struct {
	whole   map[string]bool     // those too short to be looked for inside a text
	lengths map[string]int      // by head
	heads   map[string][]string // by their first bytes
	first   [256]bool           // bytes that a head begins with
	size    int                 // bytes, by an estimate
}

// add learns one value.
func (v *values) add(value string) {
	if len(value) < shortest || trivial[strings.ToLower(value)] {
		return
	}
	head := value[:min(len(value), headLength)]
	v.mu.RLock()
	known := v.now.whole[value] || v.now.lengths[head] >= len(value)
	v.mu.RUnlock()
	if known {
		return
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	defer v.some.Store(true)
	if v.now.size > maxRemembered {
		v.now, v.before = generation{}, v.now
	}
	v.now.add(value, head)
}

// overhead is what a value takes in maps beside its text.
const overhead = 150

func (g *generation) add(value, head string) {
	if len(value) < window {
		if g.whole == nil {
			g.whole = map[string]bool{}
		}
		g.whole[strings.Clone(value)] = true
		g.size += overhead
		return
	}
	if g.heads == nil {
		g.heads, g.lengths = map[string][]string{}, map[string]int{}
	}
	head = strings.Clone(head)
	if g.lengths[head] == 0 {
		g.heads[head[:window]] = append(g.heads[head[:window]], head)
		g.first[head[0]] = true
		g.size += len(head) + overhead
	}
	g.lengths[head] = max(g.lengths[head], len(value))
}

// empty reports whether nothing was learned yet.
func (v *values) empty() bool { return !v.some.Load() }

// mask replaces the values of at least a length in a text.
func (v *values) mask(text string, least int) string {
	v.mu.RLock()
	defer v.mu.RUnlock()
	var b strings.Builder
	last := 0
	for start, end := v.next(text, 0, least); start < len(text); start, end = v.next(text, end, least) {
		b.WriteString(text[last:start])
		b.WriteString(Mask)
		last = end
	}
	if last == 0 {
		return text
	}
	b.WriteString(text[last:])
	return b.String()
}

// next finds the first value of at least a length that begins at an offset of a
// text or behind it. Where there is none, it is at the text's end and empty.
func (v *values) next(text string, from, least int) (start, end int) {
	if from == 0 && len(text) >= least && (v.now.whole[text] || v.before.whole[text]) {
		return 0, len(text)
	}
	for i := from; i+window <= len(text); i++ {
		if n := max(v.now.longest(text[i:]), v.before.longest(text[i:])); n > 0 && n >= least {
			return i, i + n
		}
	}
	return len(text), len(text)
}

// longest is how many bytes at the beginning of a text belong to a value. A text that is cut may end in one.
func (g *generation) longest(text string) int {
	if !g.first[text[0]] {
		return 0
	}
	found := 0
	for _, head := range g.heads[text[:window]] {
		if strings.HasPrefix(text, head) {
			found = max(found, g.lengths[head])
		} else if begun := beforeCut(text); len(begun) >= window && strings.HasPrefix(head, begun) {
			found = max(found, len(begun))
		}
	}
	return min(found, len(text))
}

// beforeCut returns what stands before the place where a text was cut; nothing if that is farther than a head is long.
func beforeCut(text string) string {
	before, _, cut := strings.Cut(text[:min(len(text), headLength+len(engine.Cut))], engine.Cut)
	if !cut {
		return ""
	}
	return strings.TrimRight(before, " ")
}
