package engine

import (
	"fmt"

	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// ChangeKind is how a field differs.
type ChangeKind string

// The kinds of change. A moved element keeps its content and changes its place in
// an ordered list.
const (
	Added    ChangeKind = "added"
	Replaced ChangeKind = "replaced"
	Removed  ChangeKind = "removed"
	Moved    ChangeKind = "moved"
)

// FieldChange is one field in which two states of an object differ.
type FieldChange struct {
	Path fieldpath.Path
	Kind ChangeKind
	// From and To are the values before and after: From is nil when the field was
	// added, To when it was removed. Those of a moved element are its old and new
	// index, as int64.
	From, To any
	// Rule is the rule that wrote the field last; zero where nothing was evaluated.
	Rule RuleRef
}

// String returns the kind and the path in structured-merge-diff's notation.
func (f FieldChange) String() string { return fmt.Sprintf("%s %s", f.Kind, f.Path) }
