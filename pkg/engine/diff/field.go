package diff

import (
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// Kind says how a field differs.
type Kind string

// The kinds. A moved element keeps its content and changes its place in an
// ordered list.
const (
	Added    Kind = "added"
	Replaced Kind = "replaced"
	Removed  Kind = "removed"
	Moved    Kind = "moved"
)

// Field is one difference. From is nil when it was added, To when it was
// removed; of a moved element they are its old and new index.
type Field struct {
	Path     fieldpath.Path
	Kind     Kind
	From, To any
}
