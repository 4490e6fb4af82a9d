package strategicmerge

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/diff"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/kyverno/pattern"
)

// Result is an object with a patch applied.
type Result struct {
	// Object is the very map that was given where nothing changed; otherwise it
	// shares with it whatever the patch did not touch.
	Object map[string]any
	// Warnings tell of fields that were left out or written differently from
	// what the patch, or Kyverno 1.19, says.
	Warnings []engine.Warning
}

// Apply merges a patch into an object; neither is modified. The schema says how
// lists merge; the zero schema replaces every list that is not patched through
// anchors.
//
// The error is a *ConditionError when the patch does not apply to this object,
// an *AnchorError or a *DirectiveError when the patch is not valid, and a
// *KindError when patch and object disagree about what a field holds. A patch
// that nests deeper than engine.DefaultLimits is refused.
func Apply(live, patch map[string]any, s engine.Schema) (Result, error) {
	if err := validate(patch, nil, 0); err != nil {
		return Result{Object: live}, err
	}
	root := newRoot(live, s)
	if err := check(patch, live, root); err != nil {
		return Result{Object: live}, discreet(err, live)
	}
	var m merger
	object, removed, err := m.mergeMap(live, []map[string]any{patch}, root)
	if err != nil {
		return Result{Object: live}, err
	}
	if removed || diff.Same(object, live) {
		object = live
	}
	return Result{Object: object, Warnings: m.warnings}, nil
}

// discreet keeps the values of a Secret out of an error.
func discreet(err error, live map[string]any) error {
	var failed *ConditionError
	if live["kind"] == "Secret" && errors.As(err, &failed) {
		return failed.Discreet()
	}
	return err
}

// ConditionError tells that a condition of the patch does not hold, so that the
// patch does not apply to the object. Its text leaves out what a Secret holds.
type ConditionError struct {
	Path string // of the field that the condition asks for
	Want any    // the pattern
	Got  any    // nil where the field is missing, or null
	// Missing tells that there is no such field.
	Missing bool

	global bool // the condition decides over the whole patch, wherever it stands
	hidden bool // Got is not to be told
}

// Error names the field, the pattern, and what was found.
func (e *ConditionError) Error() string {
	if e.Missing {
		return fmt.Sprintf("condition on %s does not hold: there is no such field", e.Path)
	}
	if _, scalar := text(e.Want); !scalar {
		return fmt.Sprintf("condition on %s does not hold: %s", e.Path, pattern.Explain(e.Want, e.Got).Below(e.Path).Text(e.show))
	}
	found := ""
	if got, ok := text(e.Got); ok && !e.hidden {
		found = "is " + shortened(got) + " and "
	}
	want, _ := text(e.Want)
	return fmt.Sprintf("condition on %s does not hold: it %sdoes not match %q", e.Path, found, want)
}

// show is a value of the object as the text may have it.
func (e *ConditionError) show(value any) string {
	if e.hidden {
		return engine.HiddenValue
	}
	return engine.BriefValue(value)
}

// shortened keeps long values out of messages.
func shortened(s string) string {
	const most = 80
	if len(s) <= most {
		return strconv.Quote(s)
	}
	return strconv.Quote(strings.ToValidUTF8(s[:most], "")) + "..."
}

// Discreet is the error without what was found.
func (e *ConditionError) Discreet() *ConditionError {
	out := *e
	out.hidden = true
	return &out
}

// Brief names the condition without what was found on the one object.
func (e *ConditionError) Brief() string { return "condition on " + e.Path + " does not hold" }

// AnchorError tells of an anchor that has no meaning where it stands. Leaving
// it out could widen the patch to objects that it was to protect.
type AnchorError struct {
	Path   string
	Anchor string // such as "X()"
}

// Error names the anchor and the ones that may stand there.
func (e *AnchorError) Error() string {
	return fmt.Sprintf("%s: the anchor %s has a meaning only inside the value of a condition; a patch knows (), <() and +()", e.Path, e.Anchor)
}

// DirectiveError tells of a directive of strategic merge patches that cannot be
// obeyed: only $patch can, with the values delete, replace and merge.
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

// KindError tells that patch and object hold different things at a path.
type KindError struct {
	Path       string
	Patch, Got string // "map", "list" or "value"
}

// Error names both kinds.
func (e *KindError) Error() string {
	return fmt.Sprintf("%s: the patch holds a %s where the object holds a %s", e.Path, e.Patch, e.Got)
}
