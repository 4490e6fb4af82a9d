package engine_test

import (
	"errors"
	"strconv"
	"testing"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
)

func TestTextCache(t *testing.T) {
	var cache engine.TextCache[string]
	parsed := 0
	do := func(text string, size int, fails error) (string, error) {
		return cache.Do(text, func(text string) (string, int, error) {
			parsed++
			return "parsed " + text, size, fails
		})
	}
	for _, c := range []struct {
		name, text string
		size       int
		fails      error
		parsed     int // in all
	}{
		{name: "new", text: "a", parsed: 1},
		{name: "kept", text: "a", parsed: 1},
		{name: "broken", text: "b", fails: errors.New("broken"), parsed: 2},
		{name: "still broken", text: "b", fails: errors.New("broken"), parsed: 3},
		{name: "too large to keep", text: "large", size: 256 << 10, parsed: 4},
		{name: "large again", text: "large", size: 256 << 10, parsed: 5},
		{name: "kept beside it", text: "a", parsed: 5},
		{name: "takes the room of all others", text: "most", size: 256<<10 - 4, parsed: 6},
		{name: "kept", text: "most", parsed: 6},
		{name: "without room", text: "a", parsed: 7},
	} {
		got, err := do(c.text, c.size, c.fails)
		if got != "parsed "+c.text || !errors.Is(err, c.fails) || parsed != c.parsed {
			t.Errorf("%s: %q, %v, parsed %d times; want %d", c.name, got, err, parsed, c.parsed)
		}
	}
	before := parsed
	for range 2 {
		for i := range 600 {
			if _, err := do(strconv.Itoa(i), 0, nil); err != nil {
				t.Fatal(err)
			}
		}
	}
	if parsed-before < 600+88 {
		t.Errorf("of 600 texts all but %d were kept", parsed-before-600)
	}
}
