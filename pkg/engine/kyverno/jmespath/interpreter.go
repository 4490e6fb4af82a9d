package jmespath

import (
	"math/rand/v2"
	"time"
)

// The bounds of one Search and of all searches with one Interpreter. They are far
// beyond what policies do, and low enough that a hostile one ends within seconds.
const (
	maxSteps      = 2_000_000  // nodes evaluated, elements and values looked at
	maxTotalSteps = 50_000_000 // the same, in all searches
	maxText       = 4 << 20    // bytes of one text that a function builds
)

// Interpreter is what expressions can see beside their data: a clock that stands
// still and a seeded source of random values. It serves one evaluation: each use
// of random() draws the next value and all searches share a bound on what they
// may cost, so it is not for concurrent use.
type Interpreter struct {
	now    time.Time
	random *rand.Rand
	spent  int
}

// New returns an interpreter for a moment and a seed. Two interpreters that are
// made alike answer the same series of queries alike.
func New(now time.Time, seed uint64) *Interpreter {
	return &Interpreter{now: now, random: rand.New(rand.NewPCG(seed, seed>>1|1))}
}

// Object is data that hands out its fields when they are asked for. Data given
// to Search may be an Object in place of a map.
type Object interface {
	// Field returns a field, and whether there is one.
	Field(name string) (value any, found bool, err error)
	// Fields returns the whole object; an expression needs it that names @.
	Fields() (map[string]any, error)
}

// evaluation is one Search: the interpreter and what may still be spent.
type evaluation struct {
	*Interpreter
	budget, left int
}

// begin starts a search with what the searches before it have left.
func (in *Interpreter) begin() evaluation {
	budget := min(maxSteps, maxTotalSteps-in.spent)
	return evaluation{Interpreter: in, budget: budget, left: budget}
}

// end accounts for a search. Those that ran inside of it, to load data for it,
// have accounted for themselves.
func (e *evaluation) end() { e.spent += e.budget - e.left }

func (e *evaluation) spend(steps int) error {
	e.left -= steps
	switch {
	case e.left >= 0:
		return nil
	case e.budget < maxSteps:
		return &LimitError{What: "steps in the expressions of one evaluation", Max: maxTotalSteps}
	}
	return &LimitError{What: "steps in one expression", Max: maxSteps}
}

// spendText accounts for building a text of so many bytes.
func (e *evaluation) spendText(bytes int) error {
	if bytes > maxText {
		return &LimitError{What: "bytes of text", Max: maxText}
	}
	return e.spend(bytes / 16)
}

// measure walks a value as if it were a tree, which is how those who take it
// will: a small expression can share one list so often that its text would not
// fit into any memory. It returns about how many bytes the value's JSON has.
func (e *evaluation) measure(value any) (int, error) {
	if err := e.spend(1); err != nil {
		return 0, err
	}
	total := 8
	switch v := value.(type) {
	case string:
		total += len(v)
		return total, e.spend(len(v) / 16)
	case []any:
		for _, item := range v {
			n, err := e.measure(item)
			if err != nil {
				return 0, err
			}
			total += n
		}
	case map[string]any:
		for key, item := range v {
			n, err := e.measure(item)
			if err != nil {
				return 0, err
			}
			total += n + len(key)
		}
	}
	return total, nil
}
