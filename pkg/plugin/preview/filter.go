package preview

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/cluster"
)

// Wants reports whether an error is of a policy or rule that --only and --skip leave: a broken
// one can be skipped like any other.
func (p *Policies) Wants(err error) bool {
	var e *engine.CompileError
	if !errors.As(err, &e) {
		return true
	}
	r := brokenRef(e)
	return p.Rules.Keeps(r) || slices.ContainsFunc(p.Rules.Only, func(name string) bool { return mayBeOf(r, name) })
}

// mayBeOf reports whether a name may be that of a rule of a policy that is too broken to have
// rules.
func mayBeOf(broken engine.RuleRef, name string) bool {
	return broken.Rule == "" && strings.HasPrefix(name, broken.Policy+"/")
}

// brokenRef returns the name for --only and --skip of what did not compile.
func brokenRef(e *engine.CompileError) engine.RuleRef {
	_, name, _ := strings.Cut(e.Policy, " ") // "ClusterPolicy team-labels"
	return engine.RuleRef{Policy: name, Rule: e.Rule}
}

// isInstalledForOthers reports whether a warning is that an installed exception or binding names a policy that is
// not in the run.
func isInstalledForOthers(w *engine.CompileError) bool {
	var unknown *engine.UnknownPolicyError
	return w.Origin == cluster.Origin && errors.As(w.Err, &unknown)
}

// installedForOthers reports whether a warning is that an installed policy changes
// nothing, unless the user named it.
func (p *Policies) installedForOthers(w *engine.CompileError) bool {
	return w.Origin == cluster.Origin && errors.Is(w.Err, engine.ErrNoMutateRule) && len(p.Rules.Only) == 0
}

// checkChoice returns an error for an --only or --skip that names nothing. A typo in --only would
// look like a policy that changes nothing; with one in --skip, a rule that was to be skipped would
// be applied.
func (p *Policies) checkChoice(kept []engine.RuleRef) error {
	all := sync.OnceValue(p.existing)
	exists := func(name string) bool {
		return existing{rules: kept}.has(name) || p.reads(name) || all().has(name)
	}
	if err := p.checkNamed("--only", p.Rules.Only, exists); err != nil {
		return err
	}
	return p.checkNamed("--skip", p.Rules.Skip, exists)
}

// checkNamed accepts the names of rules, and those of policies without rules, which have an error
// or a warning of their own.
func (p *Policies) checkNamed(flag string, names []string, exists func(name string) bool) error {
	for _, name := range names {
		if exists(name) {
			continue
		}
		if i := strings.LastIndex(name, "/"); i > 0 && p.reads(name[:i]) {
			return fmt.Errorf("%s %s: policy %s has no mutate rule %s", flag, name, name[:i], name[i+1:])
		}
		return fmt.Errorf("%s %s: no such policy or rule", flag, name)
	}
	return nil
}

// reads reports whether a policy of this name was read.
func (p *Policies) reads(name string) bool {
	for _, d := range p.Dialects {
		for _, doc := range p.Of(d) {
			if d.Accepts(doc.Key.GroupKind) == engine.Policy && slices.Contains(doc.Names(), name) {
				return true
			}
		}
	}
	return false
}

// existing are the rules that exist, and what is too broken to have rules.
type existing struct{ rules, broken []engine.RuleRef }

// has reports whether the name is, or may be, one of these.
func (e existing) has(name string) bool {
	named := engine.RuleFilter{Only: []string{name}}.Keeps
	return slices.ContainsFunc(e.rules, named) || slices.ContainsFunc(e.broken, func(r engine.RuleRef) bool {
		return named(r) || mayBeOf(r, name)
	})
}

// existing compiles the policies without --only and --skip.
func (p *Policies) existing() existing {
	var out existing
	for _, d := range p.Dialects {
		mine := p.Of(d)
		if len(mine) == 0 {
			continue
		}
		var program engine.Program
		err := engine.Guard(func() (err error) {
			program, err = d.Compile(engine.Compilation{Documents: mine, Limits: p.Limits, Warn: func(engine.CompileError) {}})
			return err
		})
		if program != nil {
			out.rules = append(out.rules, program.Rules()...)
		}
		for _, broken := range engine.JoinedErrors(err) {
			var e *engine.CompileError
			if errors.As(broken, &e) {
				out.broken = append(out.broken, brokenRef(e))
			}
		}
	}
	return out
}
