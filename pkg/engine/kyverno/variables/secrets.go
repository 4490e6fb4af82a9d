package variables

import "github.com/kubectl-mutate/kubectl-mutate/pkg/engine/kyverno/jmespath"

// Secrets are the names of a scope that stand for Secrets, or for what was made of some, and how much of each an expression
// has to read to make a rule confidential. The zero value has none.
type Secrets struct {
	held map[string]jmespath.Reading
	seen bool
}

// hold makes a name known. An expression that is evaluated from now on is confidential if it reads that much.
func (s *Secrets) hold(name string, from jmespath.Reading) {
	if s.held == nil {
		s.held = map[string]jmespath.Reading{}
	}
	if known, ok := s.held[name]; !ok || from < known {
		s.held[name] = from
	}
}

// read notes what an expression has read.
func (s *Secrets) read(expr *jmespath.Expression) {
	for name, from := range s.held {
		s.seen = s.seen || expr.Reads(name) >= from
	}
}

// HoldSecret makes a name known that stands for a Secret, of which metadata may be read, or for an object with fields that were made of
// one.
func (s *Scope) HoldSecret(name string, tainted bool) {
	from := jmespath.ReadsMore
	if tainted {
		from = jmespath.ReadsMetadata
	}
	s.tree.secrets.hold(name, from)
}

// Picked notes that a loader has applied an expression to what it has read.
func (s *Scope) Picked(expr *jmespath.Expression) { s.picked = append(s.picked, expr) }

// LoadedSecret notes that a Secret was read for an entry. What Picked was told decides whether the entry is one, is made
// of its metadata alone, or of more. The error of an entry may quote what was read.
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
	s.tree.secrets.seen = s.tree.secrets.seen || err != nil || reading == jmespath.ReadsMore
	if isObject {
		s.HoldSecret(name, false)
	}
}

// Confidential reports whether what was evaluated may depend on more of a Secret than its metadata, or on what was made of one.
func (s *Scope) Confidential() bool { return s != nil && s.tree.secrets.seen }
