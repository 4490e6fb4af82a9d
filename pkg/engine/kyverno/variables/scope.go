package variables

import (
	"errors"
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
	loaded map[*binding]*outcome
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
	compiled    *jmespath.Cache // nil until something is compiled
}

// binding is one name; load is nil where the value is known. Nothing else of a binding
// changes than that its value is made, so that scopes can share them.
type binding struct {
	name  string
	value any
	late  func() any // makes the value; nil where it is known
	load  func(*Scope) (any, error)
	order int
	prev  *binding

	all map[string]any // in place of the name and its value: many of them
	but []string       // names that are not among these
}

// has returns a value of many.
func (b *binding) has(name string) (any, bool) {
	value, ok := b.all[name]
	return value, ok && !slices.Contains(b.but, name)
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

// Sharing makes the scope keep what it compiles in a cache that other scopes share. It returns the scope.
func (s *Scope) Sharing(compiled *jmespath.Cache) *Scope {
	s.tree.compiled = compiled
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

// Define adds an entry whose value load returns when the name is first used. Load
// is given a scope that holds the values of the scope that asks, but of the
// entries only those defined before this one, also an earlier one of the same
// name. Its error is that of every query that uses the name, as an *EntryError;
// an entry that is not used is never loaded. A child that is first to use an
// entry of its parent loads it for itself alone, because it may see values that
// the parent does not have.
//
// A load that returns a *jmespath.NotFoundError with the entry's own name means
// that there is no such entry after all: queries get a missing key.
func (s *Scope) Define(name string, load func(*Scope) (any, error)) {
	s.bind(&binding{name: name, load: load})
}

func (s *Scope) bind(b *binding) {
	if s.head != nil {
		b.order = s.head.order + 1
	}
	b.prev = s.head
	s.head = b
}

// Interpreter evaluates expressions on data beside the scope, with the same clock
// and the same random values.
func (s *Scope) Interpreter() *jmespath.Interpreter { return s.tree.interpreter }

// Query evaluates an expression on the scope. A name that the scope does not
// have is a *jmespath.NotFoundError.
func (s *Scope) Query(expr *jmespath.Expression) (any, error) {
	return expr.Search(s.tree.interpreter, &view{scope: s, expr: expr})
}

// Compile compiles an expression; it is kept for all scopes of the tree, and those it shares with. One that is hidden is an engine.ErrHidden.
func (s *Scope) Compile(expr string) (*jmespath.Expression, error) {
	if s.tree.interpreter.Hides() && engine.IsHidden(expr) {
		return nil, engine.ErrHidden
	}
	if s.tree.compiled == nil {
		s.tree.compiled = &jmespath.Cache{}
	}
	return s.tree.compiled.Compile(expr)
}

// QueryText compiles and evaluates an expression; the compiled one is kept for
// all scopes of the tree.
func (s *Scope) QueryText(expr string) (any, error) {
	compiled, err := s.Compile(expr)
	if err != nil {
		return nil, err
	}
	return s.Query(compiled)
}

// lookup returns the newest value or visible entry of a name.
func (s *Scope) lookup(name string) (value any, found bool, err error) {
	for b := s.head; b != nil; b = b.prev {
		if value, ok := b.has(name); ok {
			return value, true, nil
		}
		if b.all != nil || b.name != name {
			continue
		}
		if b.late != nil {
			b.value, b.late = b.late(), nil
		}
		if b.load == nil {
			return b.value, true, nil
		}
		if b.order < s.before {
			value, err := s.resolve(b)
			return value, true, err
		}
	}
	return nil, false, nil
}

// resolve returns an entry's value, loaded now unless this scope or one above
// has it.
func (s *Scope) resolve(b *binding) (any, error) {
	for up := s; up != nil; up = up.parent {
		if known := up.loaded[b]; known != nil {
			if known.pending {
				return nil, &EntryError{Name: b.name, Err: &CycleError{Name: b.name}}
			}
			return known.value, known.err
		}
	}
	result := &outcome{pending: true}
	keeper := s.keeper
	if keeper.loaded == nil {
		keeper.loaded = make(map[*binding]*outcome)
	}
	keeper.loaded[b] = result
	value, err := b.load(&Scope{tree: s.tree, parent: s, head: s.head, before: b.order, keeper: keeper})
	if errors.Is(err, engine.ErrHidden) {
		value, err = engine.HiddenValue, nil
	}
	if err == nil {
		err = keeper.account(value)
	}
	switch {
	case err == nil:
		*result = outcome{value: value}
	case isAbsent(b.name, err):
		*result = outcome{err: err}
	default:
		*result = outcome{err: &EntryError{Name: b.name, Err: err}}
	}
	return result.value, result.err
}

func isAbsent(name string, err error) bool {
	missing, ok := err.(*jmespath.NotFoundError) //nolint:errorlint // a wrapped one comes from another query
	return ok && missing.Key == name
}

// account adds a loaded value to what this scope and those above hold.
func (s *Scope) account(value any) error {
	room := s.tree.limits.ContextSize
	for up := s; up != nil; up = up.parent {
		room -= up.size
	}
	size := sizeOf(value, room)
	if size > room {
		return &SizeError{Max: s.tree.limits.ContextSize}
	}
	s.size += size
	return nil
}

// sizeOf is about the number of bytes of a value's JSON; it stops beyond room.
func sizeOf(value any, room int) int {
	size := 2
	switch v := value.(type) {
	case string:
		size += len(v)
	case []any:
		for i := 0; i < len(v) && size <= room; i++ {
			size += sizeOf(v[i], room-size)
		}
	case map[string]any:
		for key, item := range v {
			if size > room {
				break
			}
			size += len(key) + sizeOf(item, room-size)
		}
	}
	return size
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
		for name := range b.all {
			if value, ok := b.has(name); ok {
				if _, hidden := all[name]; !hidden {
					all[name] = value
				}
			}
		}
		if b.all != nil {
			continue
		}
		if _, hidden := all[b.name]; hidden || (b.load != nil && !v.expr.Uses(b.name)) {
			continue
		}
		value, found, err := v.scope.lookup(b.name)
		if err != nil && !isAbsent(b.name, err) {
			return nil, err
		}
		if found && err == nil {
			all[b.name] = value
		}
	}
	return all, nil
}
