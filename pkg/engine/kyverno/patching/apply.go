package patching

import (
	"cmp"
	"fmt"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/diff"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/kyverno/pattern"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/limit"
)

// Apply merges the patch into an object, which stays as it is. The lists are those of
// its kind; without a schema every list is replaced that is not patched through
// anchors. It returns the very map that it was given where nothing changed, otherwise
// one that shares with it whatever the patch did not touch. The warnings are about
// fields that are left out, or written differently from the patch or from what
// Kyverno 1.19 would write.
//
// Where nothing changed, why holds what kept each part of the patch from being written
// that the object does not hold already; where something changed, its reasons mean
// nothing. It may be nil.
//
// The error is a *ConditionError when the patch does not apply to this object, and a
// another one when patch and object disagree about what a field holds, or that of the clock.
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

// apply checks the conditions, and merges.
func (m *merger) apply(p *StrategicMerge, live map[string]any,
	l *Lists,
) (object map[string]any, removed bool, err error) {
	root := l.root()
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

// ConditionError is a condition of the patch that does not hold, so that the patch
// does not apply to the object.
type ConditionError struct {
	Path string // of the field that the condition asks for
	Want any    // the pattern
	Got  any    // nil where the field is missing, or null
	// Missing is set where there is no such field.
	Missing bool
	// Why is where Got does not match a pattern that is a map or a list.
	Why    pattern.Difference
	global bool // the condition is one of the whole patch
}

// Error names the field, the pattern, and what was found.
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

// Brief names the condition without what was found.
func (e *ConditionError) Brief() string { return "condition on " + e.Path + " does not hold" }

// kindError is about a path at which patch and object hold different kinds of values.
func kindError(path string, patch, got kind) error {
	return fmt.Errorf("%s: the patch holds a %s where the object holds a %s", path, patch, got)
}
