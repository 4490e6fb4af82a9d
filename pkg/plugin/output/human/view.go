package human

import (
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/output"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/output/objectdiff"
)

// View shows single objects as the diff format does, for reports that lay them out in
// their own way. It is used by one goroutine at a time.
type View struct {
	base   base
	differ objectdiff.Differ
}

// NewView takes what the options say about Secrets and context lines.
func NewView(o output.Options) *View {
	return &View{base: newBase(o), differ: newDiffer(o)}
}

// NewComparisonView is NewView for what the two sides of a comparison make of an object.
func NewComparisonView(o output.Options) *View {
	v := NewView(o)
	v.differ.Names = comparisonNames()
	return v
}

// Likeness returns a value that is equal for objects of a kind that change alike and
// are shown in the same words.
func (v *View) Likeness(c *engine.Change, words []byte) [32]byte {
	return v.base.likeness(c, words)
}

// Unified returns the unified diff of an object's two states, escaped and masked. It is
// empty if they are the same text. Alike are differences that are not to be shown.
func (v *View) Unified(c *engine.Change, alike []engine.FieldChange) (string, error) {
	return v.differ.Unified(c, alike)
}
