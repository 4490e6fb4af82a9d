package fleet

import (
	"encoding/json"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	kjson "sigs.k8s.io/json"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/compare"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/output"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/wording"
)

// record is an event of a cluster as it is kept: one of the two.
type record struct {
	Evaluated *change   `json:",omitempty"`
	Compared  *compared `json:",omitempty"`
}

// change is an engine.Change as far as printers show it.
type change struct {
	Subject       engine.ObjectKey
	Before, After *state
	Fields        []field        `json:",omitempty"`
	Steps         []step         `json:",omitempty"`
	NotMatched    engine.RuleSet `json:",omitzero"`
	Impacts       []impact       `json:",omitempty"`
	Origin        string         `json:",omitempty"`
}

// state is an object. Of one that does not change only that it is there is kept.
type state struct {
	Object map[string]any `json:",omitempty"`
}

// field is an engine.FieldChange; its own JSON leaves out the values.
type field struct {
	Path             []string          `json:",omitempty"`
	Kind             engine.ChangeKind `json:",omitempty"`
	From, To         any               `json:",omitempty"`
	Rule             engine.RuleRef    `json:",omitzero"`
	Withheld, Secret bool              `json:",omitempty"`
	SecretFrom       int               `json:",omitempty"`
	// Rules are those of a compare.Field.
	Rules *[2]engine.RuleRef `json:",omitempty"`
}

// step is an engine.Step, and what its own JSON leaves out.
type step struct {
	Step   engine.Step
	Fields []field `json:",omitempty"`
	Brief  string  `json:",omitempty"` // of the error
}

// impact is an engine.Impact.
type impact struct {
	engine.Impact
	Fields [][]string `json:",omitempty"`
}

// stepError is the error of a step that was kept.
type stepError struct {
	error
	brief string
}

// Brief is what wording.Brief looks for.
func (e *stepError) Brief() string { return e.brief }

// Unwrap returns the error with the whole text.
func (e *stepError) Unwrap() error { return e.error }

// newChange returns what is kept of a change: with its states, or where these are not shown with whether
// there is one.
func newChange(c *engine.Change, states bool) (out *change, err error) {
	out = &change{
		Subject: c.Subject, NotMatched: c.NotMatched, Origin: c.Target.Origin,
		Before: newState(c.Before, states), After: newState(c.After, states),
	}
	if out.Fields, err = newFields(c.Fields); err != nil {
		return nil, err
	}
	for i := range c.Steps {
		s := step{Step: c.Steps[i]}
		if s.Fields, err = newFields(s.Step.Fields); err != nil {
			return nil, err
		}
		if s.Step.Err != nil {
			s.Brief = wording.Brief(s.Step.Err)
		}
		s.Step.Fields = nil
		out.Steps = append(out.Steps, s)
	}
	for _, i := range c.Impacts {
		one := impact{Impact: i, Fields: make([][]string, len(i.Fields))}
		for at, path := range i.Fields {
			if one.Fields[at], err = engine.PathElements(path); err != nil {
				return nil, err
			}
		}
		one.Impact.Fields = nil
		out.Impacts = append(out.Impacts, one)
	}
	return out, nil
}

func newState(u *unstructured.Unstructured, whole bool) *state {
	switch {
	case u == nil:
		return nil
	case !whole:
		return &state{}
	}
	return &state{u.Object}
}

func newFields(changes []engine.FieldChange) ([]field, error) {
	var out []field
	for _, f := range changes {
		path, err := engine.PathElements(f.Path)
		if err != nil {
			return nil, err
		}
		out = append(out, field{
			Path: path, Kind: f.Kind, From: f.From, To: f.To, Rule: f.Rule,
			Withheld: f.Withheld, Secret: f.Secret, SecretFrom: f.SecretFrom,
		})
	}
	return out, nil
}

// change returns the change of an object on a cluster.
func (r *change) change(cluster string) (out *engine.Change, err error) {
	out = &engine.Change{Subject: r.Subject, NotMatched: r.NotMatched, Scoped: true, Before: r.Before.object(), After: r.After.object()}
	out.Subject.Cluster = cluster
	out.Target = engine.Target{Key: out.Subject, Object: out.Before, Origin: r.Origin}
	if out.Fields, err = fieldsOf(r.Fields); err != nil {
		return nil, err
	}
	for _, s := range r.Steps {
		s.Step.Subject = out.Subject
		if s.Step.Fields, err = fieldsOf(s.Fields); err != nil {
			return nil, err
		}
		if s.Step.Err != nil {
			s.Step.Err = &stepError{s.Step.Err, s.Brief}
		}
		out.Steps = append(out.Steps, s.Step)
	}
	for _, i := range r.Impacts {
		for _, elements := range i.Fields {
			path, err := pathOf(elements)
			if err != nil {
				return nil, err
			}
			i.Impact.Fields = append(i.Impact.Fields, path)
		}
		out.Impacts = append(out.Impacts, i.Impact)
	}
	return out, nil
}

func (s *state) object() *unstructured.Unstructured {
	if s == nil {
		return nil
	}
	return &unstructured.Unstructured{Object: s.Object}
}

func fieldsOf(kept []field) ([]engine.FieldChange, error) {
	var out []engine.FieldChange
	for i := range kept {
		f := &kept[i]
		path, err := pathOf(f.Path)
		if err != nil {
			return nil, err
		}
		out = append(out, engine.FieldChange{
			Path: path, Kind: f.Kind, From: f.From, To: f.To, Rule: f.Rule,
			Withheld: f.Withheld, Secret: f.Secret, SecretFrom: f.SecretFrom,
		})
	}
	return out, nil
}

// pathOf returns a path, which is empty for the whole object.
func pathOf(elements []string) (fieldpath.Path, error) {
	if len(elements) == 0 {
		return nil, nil
	}
	return engine.ParsePathElements(elements)
}

// compared is an output.Compared as far as printers show it.
type compared struct {
	Verdict                       compare.Verdict
	Operations                    []engine.Operation
	Everywhere, Reordered, Failed bool `json:",omitempty"`
	Changes                       [2]*change
	Fields, Alike                 []field  `json:",omitempty"`
	Variant                       *variant `json:",omitempty"`
}

// variant is a compare.Variant.
type variant struct {
	Count  int
	Kinds  []string
	Object *state
	Beside []*state `json:",omitempty"`
}

func newCompared(r *compare.Result) (out *compared, err error) {
	out = &compared{Verdict: r.Verdict, Operations: r.Operations, Everywhere: r.Everywhere, Reordered: r.Reordered, Failed: r.Failed}
	for side, c := range r.Changes {
		if out.Changes[side], err = newChange(c, r.Verdict != compare.Same); err != nil {
			return nil, err
		}
	}
	for i := range r.Fields {
		one, err := newFields([]engine.FieldChange{r.Fields[i].FieldChange})
		if err != nil {
			return nil, err
		}
		one[0].Rules = &r.Fields[i].Rules
		out.Fields = append(out.Fields, one[0])
	}
	if out.Alike, err = newFields(r.Alike); err != nil {
		return nil, err
	}
	if v := r.Variant; v != nil {
		out.Variant = &variant{Count: v.Count, Kinds: v.Kinds, Object: newState(v.Object, true)}
		for _, u := range v.Beside {
			out.Variant.Beside = append(out.Variant.Beside, newState(u, true))
		}
	}
	return out, nil
}

func (r *compared) compared(cluster string) (output.Compared, error) {
	out := &compare.Result{
		Verdict: r.Verdict, Operations: r.Operations, Everywhere: r.Everywhere, Reordered: r.Reordered, Failed: r.Failed,
	}
	var err error
	for side, c := range r.Changes {
		if out.Changes[side], err = c.change(cluster); err != nil {
			return output.Compared{}, err
		}
	}
	out.Subject, out.Target = out.Changes[compare.Old].Subject, out.Changes[compare.Old].Target
	fields, err := fieldsOf(r.Fields)
	if err != nil {
		return output.Compared{}, err
	}
	for i := range fields {
		out.Fields = append(out.Fields, compare.Field{FieldChange: fields[i], Rules: *r.Fields[i].Rules})
	}
	if out.Alike, err = fieldsOf(r.Alike); err != nil {
		return output.Compared{}, err
	}
	if v := r.Variant; v != nil {
		out.Variant = &compare.Variant{Count: v.Count, Kinds: v.Kinds, Object: v.Object.object()}
		for _, u := range v.Beside {
			out.Variant.Beside = append(out.Variant.Beside, u.object())
		}
	}
	return output.Compared{Result: out, Difference: out.Difference()}, nil
}

// encode returns the line that is kept of an event, and nothing for other events.
func encode(e output.Event) ([]byte, error) {
	var r record
	var err error
	switch e := e.(type) {
	case output.Evaluated:
		r.Evaluated, err = newChange(e.Change, e.Changed())
	case output.Compared:
		r.Compared, err = newCompared(e.Result)
	default:
		return nil, nil
	}
	text, failed := json.Marshal(r)
	if err := errors.Join(err, failed); err != nil {
		return nil, fmt.Errorf("keeping what was found: %w", err)
	}
	return append(text, '\n'), nil
}

// decode returns the event of a line.
func decode(text []byte, cluster string) (output.Event, error) {
	var r record
	if err := kjson.UnmarshalCaseSensitivePreserveInts(text, &r); err != nil {
		return nil, fmt.Errorf("reading what was kept: %w", err)
	}
	if r.Compared != nil {
		return r.Compared.compared(cluster)
	}
	c, err := r.Evaluated.change(cluster)
	return output.Evaluated{Change: c}, err
}
