package variables

import (
	"encoding/json"
	"errors"
	"iter"
	"math"
	"slices"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/kyverno/jmespath"
)

// Scope is the JSON context of an evaluation: names with values, and entries
// that load their value when it is first asked for. It is used by one goroutine
// at a time, together with all its children.
type Scope struct {
	tree   *tree
	parent *Scope
	head   *binding // the newest; older ones follow
	loaded map[defined]*outcome
	size   int // bytes of what this scope itself has loaded
	// before hides the entries of this order and beyond: a loader sees only the
	// entries that were defined before its own.
	before int
	keeper *Scope // keeps what is loaded: the scope itself, or the one that a loader works for
}

// tree is what a scope shares with all its children.
type tree struct {
	interpreter *jmespath.Interpreter
	limits      engine.Limits
}

// binding is one name with its value, or many, or entries. Nothing else of a binding
// changes than that its value is made, so that scopes can share them.
type binding struct {
	name  string
	value any
	late  func() any // makes the value; nil where it is known
	order int        // of the entries, that of the first
	prev  *binding

	all map[string]any // in place of the name and its value: many of them
	but []string       // names that are not among these

	entries *Names // in place of the name and its value
	loader  Loader
}

// defined is one of the entries of a binding.
type defined struct {
	*binding
	index int
}

func (e defined) name() string { return e.entries.At(e.index) }

// has returns a value of many.
func (b *binding) has(name string) (any, bool) {
	value, ok := b.all[name]
	return value, ok && !slices.Contains(b.but, name)
}

// entry returns the index of the last entry of a name, of those before an order.
func (b *binding) entry(name string, before int) (index int, found bool) {
	if b.entries == nil {
		return 0, false
	}
	all := b.entries.indexes[name]
	for i, _ := slices.BinarySearch(all, before-b.order); i > 0; i-- {
		if !b.loader.Omits(all[i-1]) {
			return all[i-1], true
		}
	}
	return 0, false
}

// outcome is what came of loading an entry; pending while it runs.
type outcome struct {
	value   any
	err     error
	pending bool
}

// NewScope returns an empty scope. ContextSize of the limits bounds what entries
// load.
func NewScope(in *jmespath.Interpreter, l engine.Limits) *Scope {
	s := &Scope{tree: &tree{interpreter: in, limits: l}, before: math.MaxInt}
	s.keeper = s
	return s
}

// Child returns a scope that sees all that this one holds now. What it sets,
// defines and loads stays its own.
func (s *Scope) Child() *Scope {
	child := &Scope{tree: s.tree, parent: s, head: s.head, before: s.before}
	child.keeper = child
	return child
}

// Set gives a name a value, which hides an earlier value or entry of that name.
// The value is shared, never modified.
func (s *Scope) Set(name string, value any) { s.bind(&binding{name: name, value: value}) }

// SetGiven is Set for all values that the user gives, but those of some names.
func (s *Scope) SetGiven(g Given, but ...string) {
	for _, values := range []map[string]any{g.global, g.own} {
		if len(values) > 0 {
			s.bind(&binding{all: values, but: but})
		}
	}
}

// SetLate is Set for a value that costs something to make: it is made when the name is first used. The
// value of that name that the scope was given just before is not kept.
func (s *Scope) SetLate(name string, value func() any) {
	if s.head != nil && s.head.name == name && s.parent != nil && s.head != s.parent.head {
		s.head = s.head.prev
	}
	s.bind(&binding{name: name, late: value})
}

// Names are those of entries, in their order. They are immutable.
type Names struct {
	list    []string
	indexes map[string][]int // in order
}

// NewNames returns the names of a list, which is kept.
func NewNames(list []string) *Names {
	indexes := make(map[string][]int, len(list))
	for i, name := range list {
		indexes[name] = append(indexes[name], i)
	}
	return &Names{list: list, indexes: indexes}
}

// At returns the name of an entry.
func (n *Names) At(index int) string { return n.list[index] }

// Loader loads the values of entries, which it knows by their index.
type Loader interface {
	// Load returns the value of an entry. It is given a scope that holds the values of the scope that asks, but of
	// the entries only those defined before this one, also an earlier one of the same name. A
	// *jmespath.NotFoundError with the entry's own name means that there is no such entry after all: queries get a
	// missing key.
	Load(index int, s *Scope) (any, error)
	// Omits reports whether an entry is not defined at all.
	Omits(index int) bool
}

// Define adds entries, whose values are loaded when their name is first used. The error of one is that of every query
// that uses the name, as an *EntryError; an entry that is not used is never loaded. A child that is first to use an
// entry of its parent loads it for itself alone, because it may see values that the parent does not have.
func (s *Scope) Define(names *Names, l Loader) { s.bind(&binding{entries: names, loader: l}) }

func (s *Scope) bind(b *binding) {
	if s.head != nil {
		b.order = s.head.next()
	}
	b.prev = s.head
	s.head = b
}

// next is the order of what is bound after a binding.
func (b *binding) next() int {
	if b.entries != nil {
		return b.order + len(b.entries.list)
	}
	return b.order + 1
}

// Interpreter evaluates expressions on data beside the scope, with the same clock
// and the same random values.
func (s *Scope) Interpreter() *jmespath.Interpreter { return s.tree.interpreter }

// Query evaluates an expression on the scope. A name that the scope does not
// have is a *jmespath.NotFoundError.
func (s *Scope) Query(expr *jmespath.Expression) (any, error) {
	return expr.Search(s.tree.interpreter, &view{scope: s, expr: expr})
}

// Compile compiles an expression. One that is hidden is an engine.ErrHidden.
func (s *Scope) Compile(expr string) (*jmespath.Expression, error) {
	if s.tree.interpreter.Hides() && engine.IsHidden(expr) {
		return nil, engine.ErrHidden
	}
	return jmespath.Compile(expr)
}

// lookup returns the newest value or visible entry of a name.
func (s *Scope) lookup(name string) (value any, found bool, err error) {
	for b := s.head; b != nil; b = b.prev {
		if value, ok := b.has(name); ok {
			return value, true, nil
		}
		if index, ok := b.entry(name, s.before); ok {
			value, err := s.resolve(defined{b, index})
			return value, true, err
		}
		if b.all != nil || b.entries != nil || b.name != name {
			continue
		}
		if b.late != nil {
			b.value, b.late = b.late(), nil
		}
		return b.value, true, nil
	}
	return nil, false, nil
}

// resolve returns an entry's value, loaded now unless this scope or one above
// has it.
func (s *Scope) resolve(e defined) (any, error) {
	for keeper := range s.keepers() {
		if known := keeper.loaded[e]; known != nil {
			if known.pending {
				return nil, &EntryError{Name: e.name(), Err: &CycleError{Name: e.name()}}
			}
			return known.value, known.err
		}
	}
	result := &outcome{pending: true}
	keeper := s.keeper
	if keeper.loaded == nil {
		keeper.loaded = make(map[defined]*outcome)
	}
	keeper.loaded[e] = result
	value, err := e.loader.Load(e.index, &Scope{tree: s.tree, parent: s, head: s.head, before: e.order + e.index, keeper: keeper})
	if errors.Is(err, engine.ErrHidden) {
		value, err = engine.HiddenValue, nil
	}
	if err == nil {
		err = keeper.account(value)
	}
	switch {
	case err == nil:
		*result = outcome{value: value}
	case isAbsent(e.name(), err):
		*result = outcome{err: err}
	default:
		*result = outcome{err: &EntryError{Name: e.name(), Err: err}}
	}
	return result.value, result.err
}

// keepers goes through the scopes that have loaded something for this one: its own keeper, and those above.
func (s *Scope) keepers() iter.Seq[*Scope] {
	return func(yield func(*Scope) bool) {
		for keeper := s.keeper; yield(keeper) && keeper.parent != nil; {
			keeper = keeper.parent.keeper
		}
	}
}

func isAbsent(name string, err error) bool {
	missing, ok := err.(*jmespath.NotFoundError) //nolint:errorlint // a wrapped one comes from another query
	return ok && missing.Key == name
}

// account adds a loaded value to what this scope and those above hold.
func (s *Scope) account(value any) error {
	text, err := json.Marshal(value)
	if err != nil {
		return err
	}
	room := s.tree.limits.ContextSize
	for keeper := range s.keepers() {
		room -= keeper.size
	}
	if len(text) > room {
		return &SizeError{Max: s.tree.limits.ContextSize}
	}
	s.size += len(text)
	return nil
}

// view shows a scope to one expression.
type view struct {
	scope *Scope
	expr  *jmespath.Expression
}

// Field looks a name up.
func (v *view) Field(name string) (value any, found bool, err error) { return v.scope.lookup(name) }

// Fields returns all values, and of the entries those that the expression names.
func (v *view) Fields() (map[string]any, error) {
	all := make(map[string]any)
	for b := v.scope.head; b != nil; b = b.prev {
		for name := range b.names(v.expr) {
			if _, hidden := all[name]; hidden {
				continue
			}
			value, found, err := v.scope.lookup(name)
			if err != nil && !isAbsent(name, err) {
				return nil, err
			}
			if found && err == nil {
				all[name] = value
			}
		}
	}
	return all, nil
}

// names are those of a binding that an expression on all of a scope gets.
func (b *binding) names(expr *jmespath.Expression) iter.Seq[string] {
	return func(yield func(string) bool) {
		switch {
		case b.all != nil:
			for name := range b.all {
				if !slices.Contains(b.but, name) && !yield(name) {
					return
				}
			}
		case b.entries != nil:
			for name := range b.entries.indexes {
				if expr.Uses(name) && !yield(name) {
					return
				}
			}
		default:
			yield(b.name)
		}
	}
}
