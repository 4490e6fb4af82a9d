package evaluate

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/cluster"
)

// Policies are the policies of a run with their inputs, and the dialects in use.
type Policies struct {
	// Compilation has the documents of all dialects. Its Warn is called for each probable mistake in a selected
	// policy.
	engine.Compilation
	Dialects []engine.Dialect
	// Strict makes each warning an error.
	Strict bool
	// Refused accepts policies that their own engine refuses, for a comparison, which writes nothing.
	Refused bool
	// UserNamed is set if the run names the user who makes requests, so that no warning asks for one.
	UserNamed bool
}

// Compile compiles the policies, dialect by dialect. It calls broken for each error of a selected policy or
// rule, and for each unknown field or kind; the rest of that rule, and other policies, are still used. It
// calls idle with the number of installed policies that mutate nothing, which are not worth a warning. The
// error is about --only and --skip.
func (p *Policies) Compile(broken func(error), idle func(policies int)) ([]engine.Program, error) {
	var programs []engine.Program
	var seen []engine.RuleRef
	idlers, wants := 0, p.Wants()
	warn := func(w engine.CompileError) {
		installed := w.Origin == cluster.Origin
		var unknown *engine.UnknownKindError
		switch class := engine.ClassOf(w.Err); {
		case !wants(&w), class == engine.AsksUser && p.UserNamed:
		case installed && class == engine.UnknownPolicy:
			// an exception or binding of another policy
		case installed && class == engine.NothingToDo && len(p.Rules.Only) == 0:
			idlers++
		case class == engine.Note, class == engine.Refused && p.Refused && !p.Strict:
			p.Warn(w)
		case p.Strict, errors.As(w.Err, &unknown), class == engine.UnknownField, class == engine.Refused:
			broken(&w)
		default:
			p.Warn(w)
		}
	}
	c := p.Compilation
	c.Warn = warn
	p.each(c, func(program engine.Program, problems []error) {
		for _, problem := range problems {
			if wants(problem) {
				broken(problem)
			}
		}
		if program != nil {
			programs, seen = append(programs, program), append(seen, program.Rules()...)
		}
	})
	if idlers > 0 {
		idle(idlers)
	}
	return programs, p.checkChoice(seen)
}

// each compiles the policies of each dialect, and calls compiled with the program, which may be nil, and its
// errors.
func (p *Policies) each(c engine.Compilation, compiled func(engine.Program, []error)) {
	for _, d := range p.Dialects {
		if c.Documents = p.Of(d); len(c.Documents) == 0 {
			continue
		}
		var program engine.Program
		err := engine.Guard(func() (err error) { program, err = d.Compile(c); return err })
		compiled(program, engine.JoinedErrors(err))
	}
}

// Of returns the documents of a dialect; nil without a policy among them.
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

// InUse returns the documents of the dialects in use, and of no dialect, which policies read as if they were
// in the cluster; without Secrets.
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
		return slices.ContainsFunc(by, func(d engine.Dialect) bool {
			return d.Accepts(doc.Key.GroupKind) != engine.Foreign
		})
	}
	return slices.DeleteFunc(slices.Clone(p.Documents), func(doc engine.Document) bool {
		return doc.Key.IsSecret() || accepted(p.Dialects, doc) && !accepted(use, doc)
	})
}

// Wants returns a function that reports whether an error is about a policy or rule that --only and --skip
// select: a broken one can be skipped like any other. A broken exception or binding cannot, since selected
// rules may depend on it.
func (p *Policies) Wants() func(error) bool {
	keeps, policies, kinds := p.Rules.Keeps(), sets.New[string](), p.kinds()
	for _, name := range p.Rules.Only {
		policies.Insert(policiesOf(name)...)
	}
	return func(err error) bool {
		var e *engine.CompileError
		if !errors.As(err, &e) {
			return true
		}
		if kind, _, _ := strings.Cut(e.Policy, " "); !kinds.Has(kind) {
			return true
		}
		r := brokenRef(e)
		return keeps(r) || r.Rule == "" && policies.Has(r.Policy)
	}
}

// kinds returns the kinds of the policies.
func (p *Policies) kinds() sets.Set[string] {
	kinds := sets.New[string]()
	for _, doc := range p.Own() {
		kinds.Insert(doc.Key.Kind)
	}
	return kinds
}

// Own returns the documents of the policies, without their inputs.
func (p *Policies) Own() []engine.Document {
	return slices.DeleteFunc(slices.Clone(p.Documents), func(d engine.Document) bool {
		return engine.RoleOf(d.Key.GroupKind, p.Dialects) != engine.Policy
	})
}

// policiesOf returns the possible policies in the name of a rule, since a policy that is too broken has no
// rules to compare: "POLICY", and "NAMESPACE/POLICY" or "KIND/POLICY".
func policiesOf(name string) []string {
	first, rest, ok := strings.Cut(name, "/")
	if !ok {
		return nil
	}
	if second, _, ok := strings.Cut(rest, "/"); ok {
		return []string{first, first + "/" + second}
	}
	return []string{first}
}

// brokenRef returns the name for --only and --skip of a policy or rule that did not compile.
func brokenRef(e *engine.CompileError) engine.RuleRef {
	_, name, _ := strings.Cut(e.Policy, " ") // "ClusterPolicy team-labels"
	return engine.RuleRef{Policy: name, Rule: e.Rule}
}

// checkChoice returns an error for an --only or --skip without a policy or rule. With a typo in --only
// nothing would seem to change; with one in --skip, the rule would be applied.
func (p *Policies) checkChoice(kept []engine.RuleRef) error {
	mine, read, all := namesOf(kept), sync.OnceValue(p.read), sync.OnceValues(p.existing)
	exists := func(name string) bool {
		if mine.Has(name) || read().Has(name) {
			return true
		}
		_, is := all()
		return is(name)
	}
	for _, typed := range []struct {
		flag  string
		names []string
	}{{"--only", p.Rules.Only}, {"--skip", p.Rules.Skip}} {
		i := slices.IndexFunc(typed.names, func(name string) bool { return !exists(name) })
		if i < 0 {
			continue
		}
		name, hint := typed.names[i], ""
		known, _ := all()
		if meant := engine.Nearest(name, maps.Keys(known.Union(read()))); meant != "" {
			hint = "; did you mean " + meant + "?"
		}
		if i := strings.LastIndex(name, "/"); i > 0 && read().Has(name[:i]) {
			return fmt.Errorf("%s %s: policy %s has no mutate rule %s%s", typed.flag, name, name[:i], name[i+1:], hint)
		}
		return fmt.Errorf("%s %s: no such policy or rule%s", typed.flag, name, hint)
	}
	return nil
}

// read returns the names of the policies that were read. Those without rules have their own error or
// warning.
func (p *Policies) read() sets.Set[string] {
	names := sets.New[string]()
	for _, doc := range p.Own() {
		names.Insert(doc.Names()...)
	}
	return names
}

// namesOf returns the names of rules and their policies for --only and --skip.
func namesOf(rules []engine.RuleRef) sets.Set[string] {
	names := sets.New[string]()
	for _, r := range rules {
		names.Insert(r.Policy)
		if r.Rule != "" {
			names.Insert(r.String())
		}
	}
	return names
}

// existing compiles the policies without --only and --skip. It returns the names of their rules, and a
// function that reports whether a name is one of them, or may be a rule of a policy that is too broken to
// have rules.
func (p *Policies) existing() (names sets.Set[string], is func(name string) bool) {
	var rules []engine.RuleRef
	broken := sets.New[string]()
	all := engine.Compilation{Warn: func(engine.CompileError) {}}
	p.each(all, func(program engine.Program, problems []error) {
		if program != nil {
			rules = append(rules, program.Rules()...)
		}
		for _, problem := range problems {
			var e *engine.CompileError
			if errors.As(problem, &e) {
				r := brokenRef(e)
				if rules = append(rules, r); r.Rule == "" {
					broken.Insert(r.Policy)
				}
			}
		}
	})
	names = namesOf(rules)
	return names, func(name string) bool { return names.Has(name) || broken.HasAny(policiesOf(name)...) }
}
