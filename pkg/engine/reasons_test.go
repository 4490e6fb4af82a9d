package engine_test

import (
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
