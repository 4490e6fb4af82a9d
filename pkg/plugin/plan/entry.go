package plan

import (
	"errors"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/diff"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/apply/request"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/redact"
)

// Entry is one object of a plan.
type Entry struct {
	Object engine.ObjectKey `json:"object"`
	// ResourceVersion is the state that was evaluated.
	ResourceVersion string `json:"resourceVersion,omitempty"`
	// LastWrite is when it was written last, by the clock of the server.
	LastWrite metav1.Time `json:"lastWrite,omitzero"`
	// Method says how the change is sent, and MethodReason why it is no
	// server-side apply; in a journal alone.
	Method       request.Method `json:"method,omitempty"`
	MethodReason string         `json:"methodReason,omitempty"`
	// Scoped reports whether the object's own rules ran; see engine.Change.
	Scoped bool `json:"scoped,omitempty"`
	diff.Partial
	// Steps are those that changed the object, failed, or warned.
	Steps []engine.Step `json:"steps,omitempty"`
	// Impacts is what the change means beyond its fields.
	Impacts []engine.Impact `json:"impacts,omitempty"`

	shown *Entry // the same as it may be shown; nil where that is all, or only that is known
}

// HoldsSecrets reports whether the change has values that were made of a Secret, or withholds them.
func (e *Entry) HoldsSecrets() bool {
	return len(e.Secrets()) > 0
}

// Secrets are the fields that were made of a Secret, without their values.
func (e *Entry) Secrets() []engine.FieldChange {
	var out []engine.FieldChange
	for _, f := range e.Fields {
		if f.Secret || f.Withheld {
			out = append(out, engine.FieldChange{Path: f.Path, SecretFrom: f.SecretFrom, Secret: true})
		}
	}
	return out
}

// Writes reports whether the entry is to be written, and not only shown: the object
// would change, and admission would not refuse it.
func (e *Entry) Writes() bool {
	return len(e.Fields) > 0 && !slices.ContainsFunc(e.Steps, func(s engine.Step) bool { return s.Outcome == engine.Denied })
}

// Incomplete reports whether a rule left open what it would do.
func (e *Entry) Incomplete() bool {
	return slices.ContainsFunc(e.Steps, func(s engine.Step) bool { return s.Outcome.Incomplete() })
}

// StatusPart is the part of the entry that is sent to /status.
func (e *Entry) StatusPart() Entry {
	out := *e
	out.Fields = statusFields(e.Fields)
	if e.shown != nil {
		shown := e.shown.StatusPart()
		out.shown = &shown
	}
	return out
}

// StatusPart is the part of a change that is sent to /status.
func StatusPart(c *engine.Change) *engine.Change {
	out := *c
	out.Fields = statusFields(c.Fields)
	if c.Shown != nil {
		out.Shown = StatusPart(c.Shown)
	}
	return &out
}

func statusFields(all []engine.FieldChange) []engine.FieldChange {
	var out []engine.FieldChange
	for _, f := range all {
		if request.EndpointOf(f.Path) == request.StatusSubresource {
			out = append(out, f)
		}
	}
	return out
}

// SplitsStatus reports whether a part of the entry is sent to /status, and a part is
// not.
func (e *Entry) SplitsStatus() bool {
	status := len(e.StatusPart().Fields)
	return status > 0 && e.Object.Subresource == "" && status < len(e.Fields)
}

// NewEntry is the entry of an evaluated object. It has the parts of the object that change.
func NewEntry(c *engine.Change) Entry {
	e := Entry{Object: c.Subject, Scoped: c.Scoped}
	if c.Before != nil {
		e.ResourceVersion = c.Before.GetResourceVersion()
		e.LastWrite = lastWrite(c.Before)
		e.Object.UID = c.Before.GetUID()
	}
	if c.Changed() && c.Before != nil && c.After != nil {
		e.Partial = diff.PartialOf(c)
	}
	for i := range c.Steps {
		s := &c.Steps[i]
		if s.Outcome == engine.Changed || s.Outcome.Incomplete() || len(s.Warnings) > 0 {
			e.Steps = append(e.Steps, stepOf(s))
		}
	}
	e.Impacts = slices.Clone(c.Impacts)
	if c.Shown != nil {
		shown := NewEntry(c.Shown)
		e.shown = &shown
	}
	return e
}

// stepOf returns a step without the object that it made, and with its reason as a string.
func stepOf(s *engine.Step) engine.Step {
	out := *s
	out.After, out.Fields, out.Trigger = nil, nil, s.Trigger
	if s.Err != nil {
		out.Err = errors.New(s.Err.Error())
	}
	return out
}

// Change is the entry as an evaluation handed it out, for printers: its objects
// hold what the change touches and their identity, no more.
func (e *Entry) Change() engine.Change {
	c := e.Partial.Change(e.Object)
	c.Scoped = e.Scoped
	c.Steps = slices.Clone(e.Steps)
	for i := range c.Steps {
		s := &c.Steps[i]
		if s.Outcome == engine.Changed {
			s.After = c.After
		}
	}
	c.Impacts = slices.Clone(e.Impacts)
	if e.shown != nil {
		shown := e.shown.Change()
		c.Shown = &shown
	}
	return c
}

// Masked is the entry as it may be shown.
func (e Entry) Masked() Entry {
	if e.shown != nil {
		e.Object, e.Partial, e.Steps, e.Impacts, e.shown = e.shown.Object, e.shown.Partial, e.shown.Steps, e.shown.Impacts, nil
	}
	e.Partial = redact.Partial(e.Partial, e.Object)
	e.Steps = slices.Clone(e.Steps)
	for i := range e.Steps {
		e.Steps[i] = redact.Step(&e.Steps[i])
	}
	return e
}
