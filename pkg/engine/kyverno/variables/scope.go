package variables

import (
	"encoding/json"
	"fmt"
	"math"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/kyverno/jmespath"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/limit"
)

// Scope is the JSON context of an evaluation: names with values, and entries
// that load their value when it is first asked for. It is used by one goroutine
// at a time, together with all its children.
type Scope struct {
	tree *tree
	head *binding // the newest; older ones follow
	// before hides the entries of this order and beyond: a loader sees only the
	// entries that were defined before its own.
	before  int
	keepers []*keeper              // of what was loaded for the scope, and for those above
	picked  []*jmespath.Expression // of a scope that a loader was given: what was applied to what was read
}

// keeper keeps what was loaded for one scope.
type keeper struct {
	loaded map[*binding]outcome
	size   int // bytes
}

// tree is what a scope shares with all its children.
type tree struct {
	interpreter *jmespath.Interpreter
	secrets     map[string]jmespath.Reading // how much an expression has to read of a name to be confidential
	secretsRead bool
}

// binding is one name with its value, or an entry. It does not change, so that scopes can share it.
type binding struct {
	name  string
	value any
	load  Load // of an entry
	order int
	prev  *binding
}

// outcome is what came of loading an entry.
type outcome struct {
	value any
	err   error
}

// NewScope returns an empty scope.
func NewScope(in *jmespath.Interpreter) *Scope {
	s := &Scope{tree: &tree{interpreter: in, secrets: map[string]jmespath.Reading{}}, before: math.MaxInt}
	return s.Child()
}

// Child returns a scope that sees all that this one holds now. What it sets,
// defines and loads stays its own.
func (s *Scope) Child() *Scope {
	own := &keeper{loaded: map[*binding]outcome{}}
	return &Scope{tree: s.tree, head: s.head, before: s.before, keepers: append([]*keeper{own}, s.keepers...)}
}

// Set gives a name a value, which hides an earlier value or entry of that name.
// The value is shared, never modified.
func (s *Scope) Set(name string, value any) { s.bind(&binding{name: name, value: value}) }

// Load returns the value of an entry. It is given a scope that holds the values of the scope that asks, but
// of the entries only those defined before this one, also an earlier one of the same name. A
// *jmespath.NotFoundError with the entry's own name means that there is no such entry after all: queries get
// a missing key.
type Load func(s *Scope) (any, error)

// Define adds an entry, whose value is loaded when its name is first used. An error is that of every query
// that uses the name; an entry that is not used is never loaded. A child that is first to use an
// entry of its parent loads it for itself alone, because it may see values that the parent does not have.
func (s *Scope) Define(name string, load Load) { s.bind(&binding{name: name, load: load}) }

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
	value, err := expr.Search(s.tree.interpreter, &view{scope: s, expr: expr})
	for name, from := range s.tree.secrets {
		s.tree.secretsRead = s.tree.secretsRead || expr.Reads(name) >= from
	}
	return value, err
}

// lookup returns the newest value or visible entry of a name.
func (s *Scope) lookup(name string) (value any, found bool, err error) {
	for b := s.head; b != nil; b = b.prev {
		switch {
		case b.name != name || b.load != nil && b.order >= s.before:
		case b.load != nil:
			value, err := s.resolve(b)
			return value, true, err
		default:
			return b.value, true, nil
		}
	}
	return nil, false, nil
}

// resolve returns an entry's value, loaded now unless this scope or one above
// has it.
func (s *Scope) resolve(e *binding) (any, error) {
	for _, keeper := range s.keepers {
		if known, ok := keeper.loaded[e]; ok {
			return known.value, known.err
		}
	}
	value, err := e.load(&Scope{tree: s.tree, head: s.head, before: e.order, keepers: s.keepers})
	if err == nil {
		err = s.account(value)
	}
	if err != nil {
		value = nil
		if !isAbsent(e.name, err) {
			err = fmt.Errorf("failed to load context entry %s: %w", e.name, err)
		}
	}
	s.keepers[0].loaded[e] = outcome{value, err}
	return value, err
}

func isAbsent(name string, err error) bool {
	missing, ok := err.(*jmespath.NotFoundError) //nolint:errorlint // a wrapped one comes from another query
	return ok && missing.Key == name
}

// account adds a loaded value to what this scope and those above hold.
func (s *Scope) account(value any) error {
	room := limit.ContextSize
	for _, keeper := range s.keepers {
		room -= keeper.size
	}
	size := limit.Bytes(value)
	if size > room { // in JSON it may be less
		text, err := json.Marshal(value)
		if err != nil {
			return err
		}
		size = len(text)
	}
	if size > room {
		return fmt.Errorf("context entries hold more than %d bytes (limit ContextSize)", limit.ContextSize)
	}
	s.keepers[0].size += size
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
		if _, hidden := all[b.name]; hidden || b.load != nil && !v.expr.Uses(b.name) {
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

// HoldSecret makes a name known that stands for a Secret, of which metadata may be read, or for an object
// with fields that were made of one. An expression that is evaluated from now on is confidential if it reads
// more.
func (s *Scope) HoldSecret(name string, tainted bool) {
	from := jmespath.ReadsMore
	if tainted {
		from = jmespath.ReadsMetadata
	}
	if known, ok := s.tree.secrets[name]; !ok || from < known {
		s.tree.secrets[name] = from
	}
}

// Picked notes that a loader has applied an expression to what it has read.
func (s *Scope) Picked(expr *jmespath.Expression) { s.picked = append(s.picked, expr) }

// LoadedSecret notes that a Secret was read for an entry. What Picked was told decides whether the entry is
// one, is made of its metadata alone, or of more. The error of an entry may quote what was read.
func (s *Scope) LoadedSecret(name string, err error) {
	isObject, reading := true, jmespath.ReadsNothing
	for _, expr := range s.picked {
		if !isObject {
			break // what is read of that has been counted
		}
		var read jmespath.Reading
		read, isObject = expr.ReadsObject()
		reading = max(reading, read)
	}
	s.tree.secretsRead = s.tree.secretsRead || err != nil || reading == jmespath.ReadsMore
	if isObject {
		s.HoldSecret(name, false)
	}
}

// Confidential reports whether what was evaluated may depend on more of a Secret than its metadata, or on
// what was made of one.
func (s *Scope) Confidential() bool { return s != nil && s.tree.secretsRead }
