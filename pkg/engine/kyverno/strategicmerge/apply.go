package strategicmerge

import (
	"cmp"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/diff"
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
// *KindError when patch and object disagree about what a field holds, or that of the clock.
func (p *Patch) Apply(c *limit.Clock, live map[string]any, l *Lists, why *engine.Reasons) (map[string]any, []engine.Warning, error) {
	m := merger{why: why, clock: c}
	object, removed, err := m.apply(p, live, l)
	if err != nil || removed || diff.Same(object, live) {
		return live, m.notes.warnings, err
	}
	return object, m.notes.warnings, nil
}

// apply checks the conditions, and merges.
func (m *merger) apply(p *Patch, live map[string]any, l *Lists) (object map[string]any, removed bool, err error) {
	root := l.root()
	failed := m.check(&p.root, live, root)
	if err := m.clock.Steps(0); err != nil {
		return nil, false, err
	}
	if failed != nil {
		return nil, false, failed.err()
	}
	object, removed, err = m.mergeMap(live, []*node{&p.root}, root)
	return object, removed, cmp.Or(m.clock.Steps(0), err)
}
