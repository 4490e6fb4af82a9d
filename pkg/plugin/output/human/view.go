package human

import (
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/output/objectdiff"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/redact"
)

// View shows single objects as the diff format does, for reports that lay them out
// in their own way. It is used by one goroutine at a time.
type View struct {
	base   base
	differ objectdiff.Differ
}

// NewView takes what the options say about Secrets and context lines.
func NewView(o Options) *View {
	return &View{base: newBase(o), differ: newDiffer(o)}
}

// Likeness is equal for objects of a kind that change alike and of which the same
// words are said.
func (v *View) Likeness(c *engine.Change, words []byte) [32]byte {
	redact.LearnChange(v.base.Masker, c)
	return v.base.likeness(c, words)
}

// Unified is the unified diff of an object's two states, harmless and masked. It is
// empty where they are the same text.
func (v *View) Unified(c *engine.Change) (string, error) {
	redact.LearnChange(v.base.Masker, c)
	return v.differ.Unified(c, nil)
}
