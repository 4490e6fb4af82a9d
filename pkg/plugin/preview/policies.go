package preview

import (
	"slices"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
)

// Policies are the policies of a run and their inputs, and the languages in which
// they may be written.
type Policies struct {
	Documents []engine.Document
	Dialects  []engine.Dialect
	Rules     engine.RuleFilter // those that the user chose
}

// CompileOptions are the options of Policies.Compile. No field may be nil.
type CompileOptions struct {
	Limits   engine.Limits
	Annotate bool // targets of mutate-existing rules
	// Warn is called for each probable mistake in a policy that the user wants.
	Warn func(engine.CompileError)
	// Idle is called with the number of installed policies that change nothing. They are
	// installed for other purposes, so that there is no warning.
	Idle func(policies int)
	// Broken is called for each error of a policy or rule that the user wants. The others
	// are used.
	Broken func(error)
}

// Compile compiles the policies, each dialect's in turn. The error is that of a
// choice that names no rule.
func (p *Policies) Compile(how CompileOptions) ([]engine.Program, error) {
	var programs []engine.Program
	var seen []engine.RuleRef
	idle := 0
	warn := func(w engine.CompileError) {
		switch {
		case !p.Wants(&w):
		case p.installedForOthers(&w):
			idle++
		default:
			how.Warn(w)
		}
	}
	for _, d := range p.Dialects {
		mine := p.Of(d)
		if len(mine) == 0 {
			continue
		}
		program, err := d.Compile(engine.Compilation{
			Documents: mine, Rules: p.Rules, Limits: how.Limits, Annotate: how.Annotate, Warn: warn,
		})
		for _, broken := range engine.JoinedErrors(err) {
			if p.Wants(broken) {
				how.Broken(broken)
			}
		}
		if program != nil {
			programs, seen = append(programs, program), append(seen, program.Rules()...)
		}
	}
	if idle > 0 {
		how.Idle(idle)
	}
	return programs, p.checkChoice(seen, how.Limits)
}

// Of returns the documents of a dialect, or none if there is no policy among them.
func (p *Policies) Of(d engine.Dialect) []engine.Document {
	var out []engine.Document
	policies := 0
	for _, doc := range p.Documents {
		role := d.Accepts(doc.Object.GroupVersionKind().GroupKind())
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

// InUse returns the documents of the dialects in use. The others, above all Secrets, belong to
// the world of manifests: with a cluster nothing reads them.
func (p *Policies) InUse() []engine.Document {
	var in []func(engine.Document) bool
	for _, d := range p.Dialects {
		if len(p.Of(d)) > 0 {
			in = append(in, func(doc engine.Document) bool {
				return d.Accepts(doc.Object.GroupVersionKind().GroupKind()) != engine.Foreign
			})
		}
	}
	return slices.DeleteFunc(slices.Clone(p.Documents), func(doc engine.Document) bool {
		return !slices.ContainsFunc(in, func(reads func(engine.Document) bool) bool { return reads(doc) })
	})
}
