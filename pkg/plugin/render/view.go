package render

import "github.com/kubectl-mutate/kubectl-mutate/pkg/engine"

// View shows single objects as the diff format does, for reports that lay them out
// in their own way. It is used by one goroutine at a time.
type View struct {
	human  human
	differ differ
}

// NewView takes what the options say about Secrets and context lines.
func NewView(o Options) *View {
	o.Masker = o.masker()
	return &View{human: newHuman(o)}
}

// Likeness is equal for objects of a kind that change alike and of which the same
// words are said.
func (v *View) Likeness(c *engine.Change, words []byte) [32]byte {
	v.human.learn(c)
	return v.human.likeness(c, words)
}

// Unified is the unified diff of an object's two states, harmless and masked. It is
// empty where they are the same text.
func (v *View) Unified(c *engine.Change) (string, error) {
	v.human.learn(c)
	return v.differ.unified(&v.human.Options, c)
}
