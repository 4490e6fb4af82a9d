package engine_test

import (
	"strings"
	"testing"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
)

func TestReasonsCountBeyondTheBound(t *testing.T) {
	l := engine.NewReasons()
	if err := l.Err(); err != nil {
		t.Errorf("an empty list is no reason: %v", err)
	}
	l.Add("a is %d", 1)
	element := l.At("element 2")
	element.Add("b is %d", 2)
	element.At("part").Add("c")
	l.Add("d")
	l.Add("e")
	if got, want := l.Err().Error(), "a is 1; element 2: b is 2; element 2: part: c; and 2 more such"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestNilReasons(t *testing.T) {
	var l *engine.Reasons
	l.At("element 1").Add("a")
	if err := l.Err(); err != nil {
		t.Error(err)
	}
}

func TestBriefValue(t *testing.T) {
	for want, value := range map[string]any{
		`"a"`:                                  "a",
		"3":                                    int64(3),
		"true":                                 true,
		"null":                                 nil,
		"a map of 1":                           map[string]any{"a": "b"},
		"a list of 2":                          []any{"a", "b"},
		`"` + strings.Repeat("ü", 40) + `"...`: strings.Repeat("ü", 41),
	} {
		if got := engine.BriefValue(value); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}
