package plan

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/diff"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/apply/request"
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
	Impacts []Impact `json:"impacts,omitempty"`

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
