package plan

import (
	"errors"
	"reflect"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/diff"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/redact"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/write/request"
)

// Entry is one object of a plan.
type Entry struct {
	Object engine.ObjectKey `json:"object"`
	// ResourceVersion of the evaluated state.
	ResourceVersion string `json:"resourceVersion,omitempty"`
	// LastWrite is the time of the last write, by the server's clock.
	LastWrite metav1.Time `json:"lastWrite,omitzero"`
	// Method says how the change is sent, and MethodReason why it is no
	// server-side apply; in a journal alone.
	Method       request.Method `json:"method,omitempty"`
	MethodReason string         `json:"methodReason,omitempty"`
	// Scoped reports whether the object's own rules ran; see engine.Change.
	Scoped bool `json:"scoped,omitempty"`
	diff.Partial
	// Steps that changed the object, failed, or warned.
	Steps []engine.Step `json:"steps,omitempty"`
	// Impacts of the change beyond its fields.
	Impacts []engine.Impact `json:"impacts,omitempty"`

	shown *Entry // the masked entry; nil if nothing is masked, or only the masked entry is known
}

// HoldsSecrets reports whether the change has values derived from a Secret, or withholds them.
func (e *Entry) HoldsSecrets() bool {
	return len(e.Secrets()) > 0
}

// Secrets lists the fields derived from a Secret, without their values.
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
	return len(e.Fields) > 0 &&
		!slices.ContainsFunc(e.Steps, func(s engine.Step) bool { return s.Outcome == engine.Denied })
}

// Incomplete reports whether the result of a rule is unknown.
func (e *Entry) Incomplete() bool {
	return slices.ContainsFunc(e.Steps, func(s engine.Step) bool { return s.Outcome.Incomplete() })
}

// StatusPart is the part of the entry for /status.
func (e *Entry) StatusPart() Entry {
	out := *e
	out.Fields = statusFields(e.Fields)
	if e.shown != nil {
		shown := e.shown.StatusPart()
		out.shown = &shown
	}
	return out
}

// StatusPart returns the part of a change for /status.
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

// SplitsStatus reports whether only a part of the entry goes to /status.
func (e *Entry) SplitsStatus() bool {
	status := len(e.StatusPart().Fields)
	return status > 0 && e.Object.Subresource == "" && status < len(e.Fields)
}

// NewEntry returns the entry of an evaluated object, with its changed parts.
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
			e.Steps = append(e.Steps, *s)
			out := &e.Steps[len(e.Steps)-1] // without the resulting object, and with its reason as a string
			if out.After, out.Fields = nil, nil; s.Err != nil {
				out.Err = errors.New(s.Err.Error())
			}
		}
	}
	e.Impacts = slices.Clone(c.Impacts)
	if c.Shown != nil {
		shown := NewEntry(c.Shown)
		e.shown = &shown
	}
	return e
}

// Sharing returns the entry with equal parts from another one: a run keeps many, most of them alike.
func (e Entry) Sharing(other *Entry) Entry {
	e.Partial = e.Partial.Sharing(other.Partial)
	if reflect.DeepEqual(e.Fields, other.Fields) {
		e.Fields = other.Fields
	}
	if reflect.DeepEqual(e.Steps, other.Steps) {
		e.Steps = other.Steps
	}
	return e
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

// Masked returns the entry with its secret values masked.
func (e Entry) Masked() Entry {
	if e.shown != nil {
		e.Object, e.Partial, e.Steps, e.Impacts, e.shown = e.shown.Object, e.shown.Partial, e.shown.Steps,
			e.shown.Impacts, nil
	}
	e.Partial = redact.Partial(e.Partial, e.Object)
	return e
}

// Drift is the error for an object whose change differs from the shown one: a field has another value, or the
// policies make another change.
type Drift struct {
	Object engine.ObjectKey
	// Planned is the shown change, and Now the change of the present object; both without values of Secrets.
	Planned, Now engine.Change
	// Fields that differ, with their writers since.
	Fields []DriftedField
}

// DriftedField is a field that drifted.
type DriftedField struct {
	Path fieldpath.Path
	// By lists the managers that own the field and wrote since the change was shown.
	By []metav1.ManagedFieldsEntry
}

// WriterString is "kubectl-edit (Update) at 2026-01-02T15:04:05Z" for an entry of managedFields.
func WriterString(e metav1.ManagedFieldsEntry) string {
	text := request.Takeover{Manager: e.Manager, Operation: e.Operation, Subresource: e.Subresource}.Owner()
	if e.Time != nil {
		text += " at " + e.Time.UTC().Format(time.RFC3339)
	}
	return text
}

// Error names the fields and their writers.
func (d *Drift) Error() string {
	var parts []string
	for _, f := range d.Fields {
		text := engine.PathString(f.Path)
		var by []string
		for _, w := range f.By {
			by = append(by, WriterString(w))
		}
		if len(by) > 0 {
			text += " (set by " + strings.Join(by, ", ") + ")"
		}
		parts = append(parts, text)
	}
	return "it drifted from what was shown: " + strings.Join(parts, ", ")
}

// Drift compares an entry with the change of the present object. It is nil if the same fields change between
// the same values, and if the object already is as planned. Other fields of the object, such as its status,
// do not count.
func (e *Entry) Drift(now *engine.Change) *Drift {
	if !now.Changed() && now.Before != nil && len(e.Fields) > 0 && !e.Withholds() &&
		len(e.Partial.Drift(now.Before.Object)) == 0 {
		return nil
	}
	var clear, masked diff.Partial
	if now.Changed() {
		clear = diff.PartialOf(now)
	}
	mask := func() {
		if now.Changed() {
			masked = redact.Partial(diff.PartialOf(now.ToShow()), e.Object)
		}
	}
	if e.Withholds() {
		mask()
	}
	drifted := slices.Concat(e.Unlike(e.comparable(clear, masked)), e.unfounded(masked),
		e.secretlyWritten(now.Before))
	if len(drifted) == 0 {
		return nil
	}
	mask()
	shown := e.Masked()
	d := &Drift{Object: e.Object, Planned: shown.Change(), Now: masked.Change(e.Object)}
	slices.SortFunc(drifted, func(a, b fieldpath.Path) int { return a.Compare(b) })
	for i, p := range drifted {
		if i > 0 && p.Equals(drifted[i-1]) {
			continue
		}
		by := writtenSince(e.LastWrite.Time, OwnersOf(now.Before, p))
		for _, f := range slices.Concat(e.Fields, now.Fields) {
			p = f.ShownPath(p)
		}
		d.Fields = append(d.Fields, DriftedField{Path: p, By: by})
	}
	return d
}

// comparable returns the present change for a comparison with the entry. It withholds the same fields as the
// entry, and has the values of all others, also of those that have become secret since.
func (e *Entry) comparable(clear, masked diff.Partial) diff.Partial {
	if !e.Withholds() {
		return clear
	}
	fields := slices.Clone(masked.Fields)
	for i, f := range clear.Fields {
		fields[i].From, fields[i].To = f.From, f.To
	}
	return diff.Partial{Fields: fields}
}

// unfounded returns the withheld fields that the present change does not withhold in the same way: a file may
// withhold a value only if this evaluation also finds a Secret there.
func (e *Entry) unfounded(masked diff.Partial) []fieldpath.Path {
	if !e.Withholds() {
		return nil
	}
	withheld := map[string]*engine.FieldChange{}
	for i := range masked.Fields {
		if f := &masked.Fields[i]; f.Withheld {
			withheld[engine.PathString(f.Path)] = f
		}
	}
	var out []fieldpath.Path
	for _, f := range e.Fields {
		if !f.Withheld {
			continue
		}
		now := withheld[engine.PathString(f.Path)]
		if now == nil || now.Kind != f.Kind || !diff.Same(f.From, now.From) || !diff.Same(f.To, now.To) {
			out = append(out, f.Path)
		}
	}
	return out
}

// secretlyWritten returns the withheld fields written since the plan was made: their values may have changed.
func (e *Entry) secretlyWritten(live *unstructured.Unstructured) []fieldpath.Path {
	if live == nil || live.GetResourceVersion() == e.ResourceVersion {
		return nil
	}
	var out []fieldpath.Path
	for _, f := range e.Fields {
		if f.Withheld && len(writtenSince(e.LastWrite.Time, OwnersOf(live, f.Path))) > 0 {
			out = append(out, f.Path)
		}
	}
	return out
}

// lastWrite returns the time of an object's last write, by the server's clock.
func lastWrite(live *unstructured.Unstructured) metav1.Time {
	var last metav1.Time
	for _, e := range live.GetManagedFields() {
		if e.Time != nil && last.Before(e.Time) {
			last = *e.Time
		}
	}
	return last
}

func writtenSince(last time.Time, writers []metav1.ManagedFieldsEntry) []metav1.ManagedFieldsEntry {
	return slices.DeleteFunc(writers, func(e metav1.ManagedFieldsEntry) bool {
		return e.Time == nil || !e.Time.After(last)
	})
}

// OwnersOf returns the managers that own a field or a part of it, otherwise the owners of a parent. The
// manager that set the value is among them.
func OwnersOf(live *unstructured.Unstructured, p fieldpath.Path) []metav1.ManagedFieldsEntry {
	if live == nil {
		return nil
	}
	var own, around []metav1.ManagedFieldsEntry
	for _, e := range live.GetManagedFields() {
		owned, err := request.FieldsOf(e)
		if err != nil {
			continue // an unreadable entry is not named
		}
		switch itself, above := owns(owned, p); {
		case itself:
			own = append(own, e)
		case above:
			around = append(around, e)
		}
	}
	if len(own) > 0 {
		return own
	}
	return around
}

// owns reports whether a set has a path, a path below, or a leaf above.
func owns(set *fieldpath.Set, p fieldpath.Path) (itself, above bool) {
	leaves := set.Leaves()
	for n := 1; n < len(p); n++ {
		above = above || leaves.Has(p[:n])
	}
	return set.Has(p) || !request.Below(set, p).Empty(), above
}
