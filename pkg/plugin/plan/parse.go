package plan

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
)

// Parse reads the text of a plan, and checks that it holds together. The error wraps ErrNoPlan or ErrDamaged, or says
// that another version wrote it.
func Parse(text []byte) (*Plan, error) {
	if len(bytes.TrimSpace(text)) == 0 {
		return nil, ErrNoPlan
	}
	var head struct{ APIVersion, Kind string }
	if err := decode(text, &head); err != nil {
		return nil, err
	}
	if !strings.HasPrefix(head.APIVersion, group+"/") || head.Kind != Kind {
		return nil, ErrNoPlan
	}
	if err := CheckFormat(head.APIVersion); err != nil { // its entries may be others
		return nil, fmt.Errorf("%w; make it again with preview --save", err)
	}
	var in planFile
	if err := decode(text, &in); err != nil {
		return nil, err
	}
	out := &in.Plan
	if err := out.validate(); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	out.recount()
	return out, nil
}

func decode(text []byte, into any) error {
	err := json.Unmarshal(text, into)
	var syntax *json.SyntaxError
	switch {
	case errors.As(err, &syntax):
		return fmt.Errorf("%w or cut off: %w", ErrDamaged, err)
	case err != nil:
		return fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	return nil
}

// validateEntries checks each entry, and that no object has two.
func validateEntries(all []*Entry) error {
	seen := make(map[engine.ObjectKey]bool, len(all))
	for i, e := range all {
		err := errNoObject
		if e != nil {
			err = e.Validate()
		}
		if err == nil && seen[e.Object.Named()] {
			err = fmt.Errorf("%s: %w", e.Object.Named(), ErrTwice)
		}
		if err != nil {
			return fmt.Errorf("entry %d: %w", i, err)
		}
		seen[e.Object.Named()] = true
	}
	return nil
}

// ErrTwice is the error for two entries of the same object.
var ErrTwice = errors.New("the object already has an entry")

var errNoObject = errors.New("an entry names no object")

// validate checks that a plan is consistent, so that its users need not.
func (p *Plan) validate() error {
	if p.Version == "" || p.Created.IsZero() {
		return errors.New("its version or creation time is missing")
	}
	if err := p.Run.Validate(); err != nil {
		return err
	}
	return validateEntries(p.Entries)
}

// Validate checks that the choice is possible, and that the documents match their
// digests.
func (r *Run) Validate() error {
	switch r.Choice.Operation {
	case "", engine.OperationAuto, engine.OperationCreate, engine.OperationUpdate, engine.OperationDelete:
	default:
		return fmt.Errorf("unknown operation %.20q", r.Choice.Operation)
	}
	for _, d := range r.Documents {
		if d.Installed {
			continue
		}
		if d.Content == nil || d.Content.Validate() != nil {
			return fmt.Errorf("%s has no valid content", d.Object)
		}
		if digest, err := digestOf(d.Content); err != nil || digest != d.Digest {
			return fmt.Errorf("%s does not match its digest", d.Object)
		}
		if key := engine.KeyOf(&unstructured.Unstructured{Object: d.Content}); key != d.Object {
			return fmt.Errorf("%s: the content is another object", d.Object)
		}
	}
	if digestOfAll(r.Documents) != r.Digest {
		return errors.New("the policies do not match their digest")
	}
	return nil
}

// Validate checks that an entry that was read from a file is consistent, and gives its
// fields their values.
func (e *Entry) Validate() error {
	if e.Object.Kind == "" || e.Object.Name == "" || e.Object.Version == "" {
		return errNoObject
	}
	err := e.Partial.Validate()
	if err == nil {
		err = e.Partial.ValidateShown()
	}
	if err != nil {
		return fmt.Errorf("%s: %w", e.Object, err)
	}
	return nil
}
