package redact

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
)

// The bounds of looking at what a policy computes, far beyond what policies do.
const (
	maxAsked   = 10_000  // values looked at to find a known one
	maxLearned = 100_000 // values of one result
	maxPublic  = 64      // pieces of text beside values that a result is compared with
	maxBytes   = 4096    // of all of these
)

var _ engine.Secrets = (*Masker)(nil)

// Any reports whether anything was learned.
func (m *Masker) Any() bool { return m != nil && !m.values.empty() }

// Known reports whether a value is, or holds, what was learned. A value that is too
// big to be looked at counts as one that does.
func (m *Masker) Known(value any) bool {
	if !m.Any() {
		return false
	}
	found := false
	whole := eachText(value, maxAsked, func(text string) bool {
		found = m.values.contains(text)
		return !found
	})
	return found || !whole
}

// Derive learns the texts of a result that was computed from known values: what is made
// of a Secret's value is a Secret's value. The text beside the values in what it was
// computed from stays public: of "postgres://:hunter22@db", split at "@", nothing new is
// learned.
func (m *Masker) Derive(result any, from ...any) {
	if !m.Any() || !holdsText(result) || !m.Known(from) {
		return
	}
	public := m.public(from)
	eachText(result, maxLearned, func(text string) bool {
		if slices.ContainsFunc(m.values.rest(text), func(piece string) bool { return !public.cover(piece) }) {
			m.learnClear(text)
		}
		return true
	})
}

// LearnValue learns the texts of a value that is known to be secret from elsewhere, such
// as a journal that withholds it.
func (m *Masker) LearnValue(value any) {
	if m == nil {
		return
	}
	eachText(value, maxLearned, func(text string) bool {
		m.learnClear(text)
		return true
	})
}

// public are texts that stand beside known values, the longest first.
type public []string

// public lists what stands beside known values in other values; nothing where that
// is more than a comparison is worth.
func (m *Masker) public(from []any) public {
	var all public
	size := 0
	few := eachText(from, maxAsked, func(text string) bool {
		pieces := m.values.rest(text)
		for _, piece := range pieces {
			size += len(piece)
		}
		all = append(all, pieces...)
		return len(all) <= maxPublic && size <= maxBytes
	})
	if !few {
		return nil
	}
	slices.SortFunc(all, func(a, b string) int { return cmp.Compare(len(b), len(a)) })
	return all
}

// cover reports whether a text is a part of a public one, perhaps once whole ones are
// taken out.
func (p public) cover(text string) bool {
	isPart := func(of string) bool { return strings.Contains(of, text) }
	if slices.ContainsFunc(p, isPart) {
		return true
	}
	for _, part := range p {
		text = strings.ReplaceAll(text, part, "")
	}
	return slices.ContainsFunc(p, isPart)
}

func holdsText(value any) bool {
	none := eachText(value, maxAsked, func(text string) bool { return len(text) < shortest })
	return !none
}

// eachText calls do for each text in a value, in no particular order, until do returns
// false or so many values were looked at, and reports whether it looked at all. Numbers
// count as texts of their digits, as far as these would be masked, and so do the names
// of fields.
func eachText(value any, most int, do func(text string) bool) (whole bool) {
	w := texts{left: most, do: do}
	return w.walk(value)
}

type texts struct {
	left int
	do   func(text string) bool
}

func (w *texts) walk(value any) (whole bool) {
	if w.left--; w.left < 0 {
		return false
	}
	switch v := value.(type) {
	case string:
		return w.do(v)
	case int64:
		digits := strconv.FormatInt(v, 10)
		return len(digits) < window || w.do(digits)
	case []any:
		return !slices.ContainsFunc(v, func(item any) bool { return !w.walk(item) })
	case map[string]any:
		for name, item := range v {
			if len(name) >= longName && !w.do(name) || !w.walk(item) {
				return false
			}
		}
	}
	return true
}
