package jmespath

import (
	"time"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/limit"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/randomtext"
)

// Interpreter is what expressions can see besides their data: a fixed clock and a
// seeded source of random values. It serves one evaluation: each use
// of random() draws the next value, so it is not for concurrent use.
type Interpreter struct {
	now    time.Time
	random *randomtext.Source
	clock  *limit.Clock
}

// New returns an interpreter for a moment and a seed. Two interpreters that are
// made alike answer the same series of queries alike.
func New(now time.Time, seed uint64) *Interpreter {
	return &Interpreter{now: now, random: randomtext.New(seed)}
}

// WithClock makes searches end when the time of a rule has passed. It returns the interpreter.
func (in *Interpreter) WithClock(c *limit.Clock) *Interpreter {
	in.clock = c
	return in
}

// Clock returns that of the rule; nil if there is none.
func (in *Interpreter) Clock() *limit.Clock { return in.clock }

// Object is data that hands out its fields when they are asked for. Data given
// to Search may be an Object in place of a map.
type Object interface {
	// Field returns a field, and whether there is one.
	Field(name string) (value any, found bool, err error)
	// Fields returns the whole object; an expression needs it that names @.
	Fields() (map[string]any, error)
}
