package strategicmerge

import (
	"fmt"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/kyverno/pattern"
)

// ConditionError is a condition of the patch that does not hold, so that the patch
// does not apply to the object.
type ConditionError struct {
	Path string // of the field that the condition asks for
	Want any    // the pattern
	Got  any    // nil where the field is missing, or null
	// Missing is set where there is no such field.
	Missing bool
	// Why is where Got does not match a pattern that is a map or a list.
	Why pattern.Difference
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

// AnchorError is an anchor that has no meaning where it stands. Leaving it out
// could widen the patch to objects that it was to protect.
type AnchorError struct {
	Path   string
	Anchor string // such as "X()"
}

// Error names the anchor and the ones that may stand there.
func (e *AnchorError) Error() string {
	return fmt.Sprintf("%s: the anchor %s has a meaning only inside the value of a condition; a patch knows (), <() and +()", e.Path, e.Anchor)
}

// DirectiveError is a directive of strategic merge patches that cannot be obeyed: only $patch can, with the values delete, replace and merge.
type DirectiveError struct {
	Path  string // of the map that holds it
	Key   string
	Value any
}

// Error names the directive and what may stand in its place.
func (e *DirectiveError) Error() string {
	if e.Key != directiveKey {
		return fmt.Sprintf("%s: the directive %s has no meaning in a Kyverno patch", e.Path, e.Key)
	}
	return fmt.Sprintf("%s: %s is %v; it must be delete, replace or merge", e.Path, e.Key, e.Value)
}

// KindError is a path at which patch and object hold different kinds of values.
type KindError struct {
	Path       string
	Patch, Got string // "map", "list" or "value"
}

// Error names both kinds.
func (e *KindError) Error() string {
	return fmt.Sprintf("%s: the patch holds a %s where the object holds a %s", e.Path, e.Patch, e.Got)
}

func joinPath(above, name string) string {
	if above == "" {
		return name
	}
	return above + "." + name
}
