package patching

import (
	"cmp"
	"fmt"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/diff"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/kyverno/pattern"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/limit"
)

// Apply merges the patch into an object, which is not modified. Lists merge by the rules of its kind; without
// a schema, all lists are replaced unless patched through anchors. It returns the given map if nothing
// changed, else a map that shares all unpatched parts with it. The warnings are about fields that are left
// out, or written differently from the patch or from Kyverno 1.19.
//
// If nothing changed, why has the reasons: one for each part of the patch that the object does not hold
// already. If something changed, they mean nothing. It may be nil.
//
// The error is a *ConditionError if the patch does not apply to this object, another one if patch and object
// disagree about the type of a field, or the clock's.
func (p *StrategicMerge) Apply(c *limit.Clock, live map[string]any, l *Lists,
	why *engine.Reasons,
) (map[string]any, []engine.Warning, error) {
	m := merger{why: why, clock: c}
	object, removed, err := m.apply(p, live, l)
	if err != nil || removed || diff.Same(object, live) {
		return live, m.warnings, err
	}
	return object, m.warnings, nil
}

func (m *merger) apply(p *StrategicMerge, live map[string]any,
	l *Lists,
) (object map[string]any, removed bool, err error) {
	root := &place{lists: l}
	failed := m.check(&p.root, live, root)
	if err := m.clock.Steps(0); err != nil {
		return nil, false, err
	}
	if failed != nil {
		return nil, false, failed
	}
	object, removed = m.mergeMap(live, []*node{&p.root}, root)
	return object, removed, cmp.Or(m.clock.Steps(0), m.err)
}

// ConditionError is an unmet condition of the patch, so that the patch does not apply.
type ConditionError struct {
	Path string // of the field
	Want any    // the pattern
	Got  any    // nil if the field is missing or null
	// Missing is set if the field does not exist.
	Missing bool
	// Why is the place where Got does not match a map or list pattern.
	Why    pattern.Difference
	global bool // the condition is for the whole patch
}

// Error names the field, the pattern and the actual value.
func (e *ConditionError) Error() string {
	if e.Missing {
		return fmt.Sprintf("condition on %s does not hold: there is no such field", e.Path)
	}
	if _, scalar := pattern.Text(e.Want); !scalar {
		return fmt.Sprintf("condition on %s does not hold: %s", e.Path, e.Why.Below(e.Path).Text(engine.BriefValue))
	}
	found := ""
	if got, ok := pattern.Text(e.Got); ok {
		found = "is " + engine.BriefValue(got) + " and "
	}
	want, _ := pattern.Text(e.Want)
	return fmt.Sprintf("condition on %s does not hold: it %sdoes not match %q", e.Path, found, want)
}

// Brief names the condition without the actual value.
func (e *ConditionError) Brief() string { return "condition on " + e.Path + " does not hold" }

// kindError returns the error of a path where patch and object hold different types.
func kindError(path string, patch, got kind) error {
	return fmt.Errorf("%s: the patch holds a %s where the object holds a %s", path, patch, got)
}
