package engine

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"

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
	// Withheld reports that a value belongs to a Secret and is masked in From and To.
	Withheld bool
	// Secret reports that a value belongs to a Secret and is there all the same.
	Secret bool
	// SecretFrom is the place, counted from 1, of the first element of Path that was made of a
	// Secret; 0 if none was.
	SecretFrom int
}

// AppliedPatches is the annotation in which the targets of Kyverno's rules carry what was changed, by which rule.
const AppliedPatches = "policies.kyverno.io/last-applied-patches"

var recordPath = fieldpath.MakePathOrDie("metadata", "annotations", AppliedPatches) //nolint:gochecknoglobals // never modified

// Records reports whether the field is AppliedPatches alone, which repeats what the other fields say.
func (f *FieldChange) Records() bool {
	n := len(f.Path)
	if n < 2 || n > len(recordPath) || !f.Path.Equals(recordPath[:n]) {
		return false
	}
	added, _ := f.To.(map[string]any)
	return n == len(recordPath) || f.Kind == Added && len(added) == 1 && added[AppliedPatches] != nil
}

// SplitRecords returns the fields that a reader counts, and those that are Records.
func SplitRecords(fields []FieldChange) (counted, records []FieldChange) {
	if !slices.ContainsFunc(fields, func(f FieldChange) bool { return f.Records() }) {
		return fields, nil
	}
	for i := range fields {
		if fields[i].Records() {
			records = append(records, fields[i])
		} else {
			counted = append(counted, fields[i])
		}
	}
	return counted, records
}

// ShownPath returns a path that is, or leads to, the field, or to a part of it, as it may be shown: up to what was made of a
// Secret, which the names in a value may be as well. Other paths are returned as they are.
func (f FieldChange) ShownPath(p fieldpath.Path) fieldpath.Path {
	from := f.SecretFrom
	if from == 0 && (f.Secret || f.Withheld) {
		from = len(f.Path) + 1
	}
	shared := min(from, len(f.Path))
	if from == 0 || len(p) < from || !p[:shared].Equals(f.Path[:shared]) {
		return p
	}
	return append(p[:from-1:from-1], fieldpath.FieldNameElement(HiddenValue))
}

// String returns the kind and the path in structured-merge-diff's notation.
func (f FieldChange) String() string { return fmt.Sprintf("%s %s", f.Kind, f.Path) }

// fieldChangeJSON is a FieldChange in files. Path is for people; Elements, in
// structured-merge-diff's notation, is what is read back.
type fieldChangeJSON struct {
	Path     string     `json:"path"`
	Elements []string   `json:"elements"`
	Kind     ChangeKind `json:"kind"`
	Withheld bool       `json:"withheld,omitempty"`
	Secret   bool       `json:"secret,omitempty"`
	// SecretFrom is the same as that of a FieldChange.
	SecretFrom int     `json:"secretFrom,omitempty"`
	Rule       RuleRef `json:"rule,omitzero"`
}

// MarshalJSON writes the path in both notations, and all else but the values: files
// hold these once, in the states of the object that the field belongs to.
func (f FieldChange) MarshalJSON() ([]byte, error) {
	elements, err := PathElements(f.Path)
	if err != nil {
		return nil, err
	}
	return json.Marshal(fieldChangeJSON{
		Path: PathString(f.Path), Elements: elements, Kind: f.Kind,
		Withheld: f.Withheld, Secret: f.Secret, SecretFrom: f.SecretFrom, Rule: f.Rule,
	})
}

// UnmarshalJSON reads what MarshalJSON wrote.
func (f *FieldChange) UnmarshalJSON(text []byte) error {
	var in fieldChangeJSON
	if err := json.Unmarshal(text, &in); err != nil {
		return err
	}
	path, err := ParsePathElements(in.Elements)
	if err != nil {
		return fmt.Errorf("field %q: %w", in.Path, err)
	}
	switch in.Kind {
	case Added, Replaced, Removed, Moved:
	default:
		return fmt.Errorf("field %q: unknown kind %q", in.Path, in.Kind)
	}
	if in.SecretFrom < 0 || in.SecretFrom > len(path) {
		return fmt.Errorf("field %q: secretFrom is %d, and the path has %d elements", in.Path, in.SecretFrom, len(path))
	}
	*f = FieldChange{Path: path, Kind: in.Kind, Withheld: in.Withheld, Secret: in.Secret, SecretFrom: in.SecretFrom, Rule: in.Rule}
	return nil
}

// PathElements returns the elements of a path in structured-merge-diff's notation,
// which ParsePathElements reads.
func PathElements(p fieldpath.Path) ([]string, error) {
	out := make([]string, len(p))
	for i, e := range p {
		var err error
		if out[i], err = fieldpath.SerializePathElement(e); err != nil {
			return nil, fmt.Errorf("path %s: %w", PathString(p), err)
		}
	}
	return out, nil
}

// ParsePathElements returns the path that PathElements was given. It is an error if
// there are no elements.
func ParsePathElements(elements []string) (fieldpath.Path, error) {
	if len(elements) == 0 {
		return nil, errors.New("no path")
	}
	out := make(fieldpath.Path, len(elements))
	for i, text := range elements {
		var err error
		if out[i], err = fieldpath.DeserializePathElement(text); err != nil {
			return nil, err
		}
	}
	return out, nil
}
