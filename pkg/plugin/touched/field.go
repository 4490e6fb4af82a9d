package touched

import (
	"encoding/json"
	"errors"
	"fmt"

	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
)

// fieldFile is a Field in files. Path is for people; Elements, in
// structured-merge-diff's notation, is what is read back.
type fieldFile struct {
	Path     string            `json:"path"`
	Elements []string          `json:"elements"`
	Kind     engine.ChangeKind `json:"kind"`
	Withheld bool              `json:"withheld,omitempty"`
	Secret   bool              `json:"secret,omitempty"`
	Rule     *Rule             `json:"rule,omitempty"`
}

// MarshalJSON writes the path in both notations.
func (f Field) MarshalJSON() ([]byte, error) {
	out := fieldFile{Path: engine.PathString(f.Path), Kind: f.Kind, Withheld: f.Withheld, Secret: f.Secret}
	if f.Rule != (engine.RuleRef{}) {
		rule := Rule(f.Rule)
		out.Rule = &rule
	}
	var err error
	if out.Elements, err = Elements(f.Path); err != nil {
		return nil, err
	}
	return json.Marshal(out)
}

// UnmarshalJSON reads what MarshalJSON wrote.
func (f *Field) UnmarshalJSON(text []byte) error {
	var in fieldFile
	if err := json.Unmarshal(text, &in); err != nil {
		return err
	}
	*f = Field{Kind: in.Kind, Withheld: in.Withheld, Secret: in.Secret}
	if in.Rule != nil {
		f.Rule = engine.RuleRef(*in.Rule)
	}
	var err error
	if f.Path, err = PathOf(in.Elements); err != nil {
		return fmt.Errorf("field %q: %w", in.Path, err)
	}
	switch f.Kind {
	case engine.Added, engine.Replaced, engine.Removed, engine.Moved:
		return nil
	}
	return fmt.Errorf("field %q: unknown kind %q", in.Path, in.Kind)
}

// Elements writes a path in structured-merge-diff's notation.
func Elements(p fieldpath.Path) ([]string, error) {
	out := make([]string, len(p))
	for i, e := range p {
		var err error
		if out[i], err = fieldpath.SerializePathElement(e); err != nil {
			return nil, fmt.Errorf("path %s: %w", engine.PathString(p), err)
		}
	}
	return out, nil
}

// PathOf reads what Elements wrote.
func PathOf(elements []string) (fieldpath.Path, error) {
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
