package plan

import (
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/diff"
)

// ErrTwice tells that two entries are of the same object.
var ErrTwice = errors.New("the object has an entry already")

var errNobody = errors.New("an entry names no object")

// validate makes sure that a plan holds together, so that whoever uses it need
// not.
func (p *Plan) validate() error {
	if p.Version == "" || p.Created.IsZero() {
		return errors.New("it does not say by which program it was made, and when")
	}
	if err := p.Run.Validate(); err != nil {
		return err
	}
	return p.validateEntries(diff.Budget)
}

func (p *Plan) validateEntries(budget int) error {
	seen := make(map[engine.ObjectKey]bool, len(p.Entries))
	for i := range p.Entries {
		if err := p.Entries[i].validate(&budget); err != nil {
			return fmt.Errorf("entry %d: %w", i, err)
		}
		key := p.Entries[i].Object.Named()
		if seen[key] {
			return fmt.Errorf("entry %d: %s: %w", i, key, ErrTwice)
		}
		seen[key] = true
	}
	return nil
}

// Validate makes sure that the choice can be meant, and that the documents are the ones that their digests are of.
func (r *Run) Validate() error {
	switch r.Choice.Operation {
	case "", engine.OperationAuto, engine.OperationCreate, engine.OperationUpdate, engine.OperationDelete:
	default:
		return fmt.Errorf("there is no operation %.20q", r.Choice.Operation)
	}
	for _, d := range r.Documents {
		if d.Installed {
			continue
		}
		if d.Content == nil || d.Content.Validate() != nil {
			return fmt.Errorf("%s has no content that can be used", d.Object)
		}
		if digest, err := digestOf(d.Content); err != nil || digest != d.Digest {
			return fmt.Errorf("%s is not what its digest is of", d.Object)
		}
		if key := engine.KeyOf(&unstructured.Unstructured{Object: d.Content}); key != d.Object {
			return fmt.Errorf("%s is another object than it says", d.Object)
		}
	}
	if digestOfAll(r.Documents) != r.Digest {
		return errors.New("the policies are not what the digest is of")
	}
	return nil
}

// Validate makes sure that an entry that was read from a file holds together.
func (e *Entry) Validate() error {
	budget := diff.Budget
	return e.validate(&budget)
}

func (e *Entry) validate(budget *int) error {
	if e.Object.Kind == "" || e.Object.Name == "" || e.Object.Version == "" {
		return errNobody
	}
	if err := e.Partial.ValidateWithin(budget); err != nil {
		return fmt.Errorf("%s: %w", e.Object, err)
	}
	return nil
}
