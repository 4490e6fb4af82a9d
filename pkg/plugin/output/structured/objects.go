package structured

import (
	"fmt"
	"io"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/diff"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/output"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/redact"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/wording"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/write"
)

// Objects prints something of each object that would change.
type Objects struct {
	output.Options
	text    func(*Objects, output.Event) (string, error) // empty for what is not printed
	printed bool
}

// NewNames returns a printer of names as `kubectl -o name` prints them, "deployment.apps/web": of the
// objects that would change, that differ, or that were written. The namespace is not part of a name, so a
// command that the names are piped to needs -n. For several clusters, the flag for the context follows the
// name.
func NewNames(o output.Options) *Objects { return &Objects{Options: o, text: (*Objects).name} }

// NewManifests returns a printer of the changed objects as a YAML stream. They keep their uid, so that
// applying them fails if the object was replaced meanwhile.
func NewManifests(o output.Options) *Objects { return &Objects{Options: o, text: (*Objects).manifest} }

// NewPatches returns a printer of an RFC 6902 patch for each changed object: a stream of JSON values, one
// per line, with the object's key.
func NewPatches(o output.Options) *Objects { return &Objects{Options: o, text: (*Objects).patch} }

// Print prints an object.
func (p *Objects) Print(s output.Shown) error {
	switch e := s.Event().(type) { // these formats are what would be written
	case output.Evaluated:
		if e.AsCreated || e.Subject.Of != (engine.Maker{}) {
			return nil
		}
	case output.Compared:
		if e.Subject.Of != (engine.Maker{}) {
			return nil
		}
	}
	text, err := p.text(p, s.Event())
	if err != nil || text == "" {
		return err
	}
	p.printed = true
	_, err = io.WriteString(p.Out, text)
	return err
}

// Close has nothing to add.
func (p *Objects) Close() error { return nil }

func (p *Objects) name(e output.Event) (string, error) {
	var key engine.ObjectKey
	var is bool
	switch e := e.(type) {
	case output.Evaluated:
		key, is = e.Subject, e.Changed()
	case output.Compared:
		key, is = e.Subject, e.Verdict.Differs()
	case output.Written:
		key, is = e.Key, e.Outcome == write.Applied || e.Outcome == write.Planned
	}
	if !is {
		return "", nil
	}
	name := wording.ResourceName(key)
	if key.Cluster != "" { // a line is arguments of kubectl
		name += " --context=" + wording.ShellQuote(key.Cluster)
	}
	return redact.Escape(name, "") + "\n", nil
}

// maskedNote precedes a manifest that must not be applied.
const maskedNote = "# Secret values are masked, do not apply: --show-secrets prints them\n"

func (p *Objects) manifest(e output.Event) (string, error) {
	c, ok := e.(output.Evaluated)
	if !ok || !c.Changed() || c.After == nil {
		return "", nil
	}
	object := redact.Trim(c.After, c.Fields, redact.Stored)
	var above string
	if p.printed {
		above = "---\n"
	}
	if c.Subject.Cluster != "" {
		above += "# cluster: " + redact.EscapeLine(c.Subject.Cluster) + "\n"
	}
	out, err := output.MarshalYAML(object.Object)
	if err == nil && !p.ShowSecrets && engine.IsSecret(object) && engine.IsHidden(string(out)) {
		above += maskedNote
		// with the same mask whether the value changes or not
		out, err = output.MarshalYAML(engine.HideObject(object).Object)
	}
	if err != nil {
		return "", fmt.Errorf("%s: %w", c.Subject, err)
	}
	return above + string(out), nil
}

// patch returns an object's key and the edits of its changed fields, without differences that the engine
// ignores.
func (p *Objects) patch(e output.Event) (string, error) {
	c, ok := e.(output.Evaluated)
	if !ok || !c.Changed() {
		return "", nil
	}
	before, after := c.Before, c.After
	if !p.ShowSecrets {
		after = engine.HideObject(after) // with the same mask whether the value changes or not
	}
	var edits []diff.Edit
	switch {
	case after == nil:
		edits = []diff.Edit{{Op: diff.OpRemove}}
	case before == nil: // it is added whole
		edits = []diff.Edit{{Op: diff.OpAdd, Value: after.Object}}
	default:
		edits = diff.Edits(before.Object, diff.Subset(before.Object, after.Object, c.Fields, nil))
	}
	out, err := MarshalLine(struct {
		Object engine.ObjectKey `json:"object"`
		Patch  []diff.Edit      `json:"patch"`
	}{c.Subject, edits})
	if err != nil {
		return "", fmt.Errorf("%s: writing JSON: %w", c.Subject, err)
	}
	return out, nil
}
