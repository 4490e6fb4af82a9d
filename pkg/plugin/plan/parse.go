package plan

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

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
