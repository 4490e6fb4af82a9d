package redact

import (
	"encoding/json"
	"slices"
	"strconv"
)

// maxLearned bounds the values that are learned of one.
const maxLearned = 100_000

// LearnValue learns the texts of a value that is known to be secret from elsewhere: it was computed
// from a Secret, or a journal withholds it.
func (m *Masker) LearnValue(value any) {
	if m == nil {
		return
	}
	eachText(value, maxLearned, func(text string) bool {
		m.learnClear(text)
		return true
	})
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
	case float64:
		text, err := json.Marshal(v)
		return err != nil || len(text) < window || w.do(string(text))
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
