package variables

import (
	"encoding/json"
	"fmt"
	"math"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/kyverno/jmespath"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/limit"
)

// Scope is the JSON context of an evaluation: named values, and entries that load on first use. It serves one
// goroutine at a time, with all of its children.
type Scope struct {
	tree *tree
	head *binding // the newest, linked to older ones
	// before hides entries of this order and beyond: a loader sees only entries defined before its own.
	before  int
	keepers []*keeper              // loaded for this scope and for its parents
	picked  []*jmespath.Expression // expressions applied to loaded data, in a loader's scope
}

type keeper struct {
	loaded []outcome
	size   int // bytes
}

// tree is shared by a scope and all its children.
type tree struct {
	interpreter *jmespath.Interpreter
	secrets     map[string]jmespath.Reading // the reading that makes an expression confidential, by name
	secretsRead bool
}

// binding is a named value or entry. It is immutable, so scopes can share it.
type binding struct {
	name  string
	value any
	load  Load // of an entry
	order int
	prev  *binding
}

type outcome struct {
	of    *binding
	value any
	err   error
}

// NewScope returns an empty scope.
func NewScope(in *jmespath.Interpreter) *Scope {
	shared := &tree{interpreter: in, secrets: map[string]jmespath.Reading{}}
	return &Scope{tree: shared, before: math.MaxInt, keepers: []*keeper{{}}}
}

// Child returns a scope that sees everything in this one now. Its own values, entries and loaded data stay
// its own.
func (s *Scope) Child() *Scope {
	keepers := append(make([]*keeper, 0, 1+len(s.keepers)), &keeper{})
	return &Scope{tree: s.tree, head: s.head, before: s.before, keepers: append(keepers, s.keepers...)}
}

// Set gives a name a value, hiding any earlier value or entry of that name. The value is shared, never
// modified.
func (s *Scope) Set(name string, value any) { s.bind(&binding{name: name, value: value}) }

// Load returns the value of an entry. Its scope has the values of the asking scope, but only entries defined
// before this one, including an earlier one of the same name. A *jmespath.NotFoundError with the entry's own
// name means that there is no such entry: queries get a missing key.
type Load func(s *Scope) (any, error)

// Define adds an entry, loaded when its name is first used. A loading error fails every query that uses the
// name; unused entries are never loaded. A child that is first to use its parent's entry loads it only for
// itself, since it may see other values.
func (s *Scope) Define(name string, load Load) { s.bind(&binding{name: name, load: load}) }

func (s *Scope) bind(b *binding) {
	if s.head != nil {
		b.order = s.head.order + 1
	}
	b.prev = s.head
	s.head = b
}

// Interpreter evaluates expressions on data outside of the scope, with the same clock and random values.
func (s *Scope) Interpreter() *jmespath.Interpreter { return s.tree.interpreter }

// Query evaluates an expression on the scope. An unknown name is a *jmespath.NotFoundError.
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

// resolve returns an entry's value, and loads it unless this scope or a parent has it.
func (s *Scope) resolve(e *binding) (any, error) {
	for _, keeper := range s.keepers {
		for _, known := range keeper.loaded {
			if known.of == e {
				return known.value, known.err
			}
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
	s.keepers[0].loaded = append(s.keepers[0].loaded, outcome{e, value, err})
	return value, err
}

func isAbsent(name string, err error) bool {
	missing, ok := err.(*jmespath.NotFoundError) //nolint:errorlint // a wrapped one comes from another query
	return ok && missing.Key == name
}

// account adds the size of a loaded value to this scope and its parents.
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

// view is a scope as one expression sees it.
type view struct {
	scope *Scope
	expr  *jmespath.Expression
}

// Field looks up a name.
func (v *view) Field(name string) (value any, found bool, err error) { return v.scope.lookup(name) }

// Fields returns all values, and the entries that the expression names.
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

// HoldSecret marks a name as a Secret, whose metadata may be read, or as an object with fields from one
// (tainted). Later expressions are confidential if they read more.
func (s *Scope) HoldSecret(name string, tainted bool) {
	from := jmespath.ReadsMore
	if tainted {
		from = jmespath.ReadsMetadata
	}
	if known, ok := s.tree.secrets[name]; !ok || from < known {
		s.tree.secrets[name] = from
	}
}

// Picked notes that a loader applied an expression to its data.
func (s *Scope) Picked(expr *jmespath.Expression) { s.picked = append(s.picked, expr) }

// LoadedSecret notes that a Secret was read for an entry. The expressions noted by Picked decide whether the
// entry is the Secret, only its metadata, or more. The entry's error may quote its data.
func (s *Scope) LoadedSecret(name string, err error) {
	isObject, reading := true, jmespath.ReadsNothing
	for _, expr := range s.picked {
		if !isObject {
			break // these reads have been counted
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

// Confidential reports whether an evaluation may depend on a Secret beyond its metadata, or on data derived
// from one.
func (s *Scope) Confidential() bool { return s != nil && s.tree.secretsRead }
