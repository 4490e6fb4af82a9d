package kyverno

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/kyverno/strategicmerge"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/kyverno/variables"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/limit"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/policydecode"
)

// patch is one patch of a rule, of whatever form: immutable and safe for concurrent
// use. A patch without variables is compiled with its policy, any other one for each
// evaluation.
type patch struct {
	field    string              // in the rule: "mutate.patchStrategicMerge"
	template *variables.Template // nil when the patch holds no variables
	compile  func(patch any) (compiledPatch, error)
	compiled compiledPatch // nil when the patch holds variables
	err      error         // of compiling it

	footprint footprint
}

// compiledPatch is a patch without variables, compiled: it patches an object, which stays as it is. The error is a
// *strategicmerge.ConditionError where the patch does not apply to it.
type compiledPatch func(patchSubject) (patchResult, error)

// patchSubject is what a patch is applied to.
type patchSubject struct {
	Object map[string]any
	// Clock is that of the rule.
	Clock *limit.Clock
	// Lists looks up how the lists of the object merge.
	Lists func() *strategicmerge.Lists
	// Why collects why nothing changes; nil if not wanted.
	Why *engine.Reasons
	// EngineView asks for warnings of what Kyverno itself would write otherwise.
	EngineView bool
}

// patchResult is an object after a patch, and what to report about it.
type patchResult struct {
	// Object is the very map that was given where nothing changed; otherwise it
	// shares with it whatever the patch did not touch.
	Object   map[string]any
	Warnings []engine.Warning
	// NotIdempotent is why the patch may give another result on its own result.
	NotIdempotent string
}

// decodePatch reads patchStrategicMerge or patchesJson6902 of a mutate block, or of an
// entry of a foreach. It is nil where there is none or are both, which goes to
// the report.
func decodePatch(m *policydecode.Fields) *patch {
	strategic, json6902 := m.At("patchStrategicMerge"), m.At("patchesJson6902")
	switch {
	case strategic.Value != nil && json6902.Value != nil:
		m.Fail("has both patchStrategicMerge and patchesJson6902, of which only one is allowed")
	case strategic.Value != nil:
		return decodeForm(m, "patchStrategicMerge")
	case json6902.Value != nil:
		return decodeForm(m, "patchesJson6902")
	case m.Value == nil:
		m.Fail("is empty, so the rule changes nothing")
	case m.Values != nil: // or else it is no mapping, which has been said
		m.Fail("has no patchStrategicMerge, patchesJson6902 or foreach")
	}
	return nil
}

// decodeLegacyPatches reads the forms of Kyverno 1.0 to 1.5; none when a mutate block has
// none, or one of those that came after them, which Kyverno preferred. Overlay and
// patches in one rule run in this order, as in 1.0 and 1.1; from 1.2 on patches
// had no effect beside an overlay.
func decodeLegacyPatches(m *policydecode.Fields) []*patch {
	var out []*patch
	for _, key := range []string{"overlay", "patches"} {
		if !m.Has(key) {
			continue
		}
		n := m.At(key)
		if newer := newerForm(m); newer != "" {
			n.Lint("has no effect beside %s", newer)
			continue
		}
		n.Lint("is a form of Kyverno 1.0 to 1.5 that later versions do not support")
		out = append(out, decodeForm(m, key))
	}
	return out
}

func newerForm(m *policydecode.Fields) string {
	for _, key := range []string{"foreach", "patchStrategicMerge", "patchesJson6902"} {
		if m.Has(key) {
			return key
		}
	}
	return ""
}

// newPatch reads the template of a patch and, if it holds no variables, compiles it.
// An error of compiling is returned by apply.
func newPatch(n policydecode.Node, key string, compile func(patch any) (compiledPatch, error)) *patch {
	p := &patch{field: strings.Clone(n.PathInRule()), compile: compile, footprint: newFootprint(key, n.Value)}
	template, err := variables.ParseAt(n.Value, "mutate", key)
	if err != nil {
		n.Fail("%w", err)
		return p
	}
	if !template.Static() {
		p.template = template
		return p
	}
	fixed, err := template.Render(nil)
	if err == nil {
		p.compiled, err = compile(fixed)
	}
	p.err = err
	return p
}

// apply resolves the variables and patches an object, which stays as it is. The error
// is a *strategicmerge.ConditionError where the patch does not apply to the object.
func (p *patch) apply(s *variables.Scope, on patchSubject) (patchResult, error) {
	unchanged := patchResult{Object: on.Object}
	compiled, err := p.resolve(s)
	if err != nil {
		return unchanged, err
	}
	on.Clock = s.Interpreter().Clock()
	out, err := compiled(on)
	if err != nil {
		return unchanged, err
	}
	out.NotIdempotent = cmp.Or(p.template.NotIdempotent(), out.NotIdempotent)
	return out, nil
}

func (p *patch) resolve(s *variables.Scope) (compiledPatch, error) {
	if p.template == nil {
		return p.compiled, p.err
	}
	rendered, err := p.template.Render(s)
	if err != nil {
		return nil, fmt.Errorf("variable substitution failed: %w", err)
	}
	if err := limit.Value(rendered); err != nil { // which a variable can put into it many times
		return nil, err
	}
	return p.compile(rendered)
}
