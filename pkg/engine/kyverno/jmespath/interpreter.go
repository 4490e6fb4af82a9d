package jmespath

import (
	"time"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/randomtext"
)

// Interpreter is what expressions can see beside their data: a fixed clock and a
// seeded source of random values. It serves one evaluation: each use
// of random() draws the next value and all searches share a bound on what they
// may cost, so it is not for concurrent use.
type Interpreter struct {
	world world
	spent int
}

// New returns an interpreter for a moment and a seed. Two interpreters that are
// made alike answer the same series of queries alike.
func New(now time.Time, seed uint64) *Interpreter {
	return &Interpreter{world: world{Now: now, Random: randomtext.New(seed)}}
}

// WithSecrets makes functions record what they derive from secret values. It returns
// the interpreter.
func (in *Interpreter) WithSecrets(s engine.Secrets) *Interpreter {
	in.world.Secrets = s
	return in
}

// Secrets returns the record of secret values; nil if there is none.
func (in *Interpreter) Secrets() engine.Secrets { return in.world.Secrets }

// Object is data that hands out its fields when they are asked for. Data given
// to Search may be an Object in place of a map.
type Object interface {
	// Field returns a field, and whether there is one.
	Field(name string) (value any, found bool, err error)
	// Fields returns the whole object; an expression needs it that names @.
	Fields() (map[string]any, error)
}

// begin starts a search: what its nodes and functions may spend, which is what the
// searches before it have left, and what its functions see.
func (in *Interpreter) begin() *env {
	return &env{budget: newBudget(in.spent), world: &in.world}
}

// end accounts for a search. Those that ran inside of it, to load data for it,
// have accounted for themselves.
func (in *Interpreter) end(e *env) { in.spent += e.spent() }
