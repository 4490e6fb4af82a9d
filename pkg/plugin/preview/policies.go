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

// Compilation says how Policies are compiled. Nothing in it is nil.
type Compilation struct {
	Limits   engine.Limits
	Annotate bool // targets of mutate-existing rules
	// Warn is told what is probably not meant in the policies that the user wants.
	Warn func(engine.CompileError)
	// Idle is told how many of the installed policies change nothing: they were
	// installed for other things, and are not warned of.
	Idle func(policies int)
	// Broken is told each error of a policy, or of a rule, that the user wants: the
	// others go on.
	Broken func(error)
}

// Compile compiles the policies, each dialect's in turn. The error is that of a
// choice that names no rule.
func (p *Policies) Compile(how Compilation) ([]engine.Program, error) {
	var programs []engine.Program
	var seen []engine.RuleRef
	idle := 0
	warn := func(w engine.CompileError) {
		switch {
		case !p.Concerns(&w):
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
			if p.Concerns(broken) {
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

// Of are the documents that mean something to a dialect; none at all when there is
// no policy among them.
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

// InUse are the documents that mean something to a dialect in use. The others,
// Secrets above all, are the world of manifests: beside a cluster nothing reads them.
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
