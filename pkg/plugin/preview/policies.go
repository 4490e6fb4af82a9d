package preview

import (
	"errors"
	"slices"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/cluster"
)

// Policies are the policies of a run and their inputs, and the languages in which
// they may be written.
type Policies struct {
	// Compilation has the documents of all dialects. Its Warn is called for each probable
	// mistake in a policy that the user wants.
	engine.Compilation
	Dialects []engine.Dialect
	// Strict takes each warning for an error.
	Strict bool
}

// Compile compiles the policies, each dialect's in turn. It calls broken for each error of a
// policy or rule that the user wants, and for each field or kind that there is not: of its rule the rest
// is used, and so are the other policies. It calls idle with the number of
// installed policies that change nothing: they are installed for other purposes, so that there
// is no warning. The error is that of a choice that names no rule.
func (p *Policies) Compile(broken func(error), idle func(policies int)) ([]engine.Program, error) {
	var programs []engine.Program
	var seen []engine.RuleRef
	idlers, wants := 0, p.Wants()
	warn := func(w engine.CompileError) {
		installed := w.Origin == cluster.Origin
		var others *engine.UnknownPolicyError
		var unknown *engine.UnknownKindError
		var field *engine.UnknownFieldError
		var refused *engine.RefusedPolicyError
		var note *engine.NoteError
		switch {
		case !wants(&w):
		case installed && errors.As(w.Err, &others): // an exception or binding of a policy that is not in the run
		case installed && errors.Is(w.Err, engine.ErrNoMutateRule) && len(p.Rules.Only) == 0:
			idlers++
		case errors.As(w.Err, &note):
			p.Warn(w)
		case p.Strict, errors.As(w.Err, &unknown), errors.As(w.Err, &field), errors.As(w.Err, &refused):
			broken(&w)
		default:
			p.Warn(w)
		}
	}
	for _, d := range p.Dialects {
		c := p.Compilation
		if c.Documents, c.Warn = p.Of(d), warn; len(c.Documents) == 0 {
			continue
		}
		var program engine.Program
		err := engine.Guard(func() (err error) { program, err = d.Compile(c); return err })
		for _, problem := range engine.JoinedErrors(err) {
			if wants(problem) {
				broken(problem)
			}
		}
		if program != nil {
			programs, seen = append(programs, program), append(seen, program.Rules()...)
		}
	}
	if idlers > 0 {
		idle(idlers)
	}
	return programs, p.checkChoice(seen)
}

// Of returns the documents of a dialect, or none if there is no policy among them.
func (p *Policies) Of(d engine.Dialect) []engine.Document {
	var out []engine.Document
	policies := 0
	for _, doc := range p.Documents {
		role := d.Accepts(doc.Key.GroupKind)
		if role == engine.Policy {
			policies++
		}
		if role != engine.Foreign {
			out = append(out, doc)
		}
	}
	if policies == 0 {
		return nil
	}
	return out
}

// InUse returns the documents of the dialects in use, and those of no dialect: what policies read as if it were
// in the cluster. Secrets are none of them.
func (p *Policies) InUse() []engine.Document {
	var use []engine.Dialect
	for _, d := range p.Dialects {
		if len(p.Of(d)) > 0 {
			use = append(use, d)
		}
	}
	if len(use) == 0 {
		return nil
	}
	accepted := func(by []engine.Dialect, doc engine.Document) bool {
		return slices.ContainsFunc(by, func(d engine.Dialect) bool { return d.Accepts(doc.Key.GroupKind) != engine.Foreign })
	}
	return slices.DeleteFunc(slices.Clone(p.Documents), func(doc engine.Document) bool {
		return doc.IsSecret() || accepted(p.Dialects, doc) && !accepted(use, doc)
	})
}
