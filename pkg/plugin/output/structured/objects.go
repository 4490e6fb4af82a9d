package structured

import (
	"bytes"
	"fmt"
	"io"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/diff"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/apply"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/output"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/output/objectdiff"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/redact"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/wording"
)

// Names prints the names of the objects that would change, of a comparison those that do not
// come out the same, or of a run that writes those that were written, as `kubectl -o name` does: "deployment.apps/web". As there,
// the namespace is not a part of it; -n belongs beside a name that is piped on. On one cluster of several,
// the flag for its context follows the name.
type Names struct{ out io.Writer }

// NewNames returns a printer of names.
func NewNames(o output.Options) *Names { return &Names{o.Out} }

// Print prints the name of an object.
func (p *Names) Print(s output.Shown) error {
	var key engine.ObjectKey
	switch e := s.Event().(type) {
	case output.Evaluated:
		if !e.Changed() {
			return nil
		}
		key = e.Subject
	case output.Compared:
		if !e.Verdict.Differs() {
			return nil
		}
		key = e.Subject
	case output.Written:
		if e.Outcome != apply.Applied && e.Outcome != apply.Planned {
			return nil
		}
		key = e.Key
	default:
		return nil
	}
	name := wording.ResourceName(key)
	if key.Cluster != "" { // a line is arguments of kubectl
		name += " --context=" + wording.ShellQuote(key.Cluster)
	}
	return WriteNames(p.out, name)
}

// Close has nothing to add.
func (p *Names) Close() error { return nil }

// Manifests prints the changed objects, as a YAML stream. They keep their
// uid, so that to apply them fails where the object was replaced meanwhile.
type Manifests struct {
	output.Options
	printed bool
}

// NewManifests returns a printer of manifests.
func NewManifests(o output.Options) *Manifests { return &Manifests{Options: o} }

// maskedNote stands above a manifest that must not be applied.
const maskedNote = "# Secret values are masked, do not apply: --show-secrets prints them\n"

// Print prints an object that would change.
func (p *Manifests) Print(s output.Shown) error {
	c, ok := s.Event().(output.Evaluated)
	if !ok {
		return nil
	}
	if !c.Changed() || c.After == nil {
		return nil
	}
	object := redact.Trim(c.After, c.Fields, redact.Stored)
	masked := !p.ShowSecrets && engine.IsSecret(object) && engine.HoldsHidden(object.Object)
	if masked {
		object = engine.HideObject(object) // with the same mask whether the value changes or not
	}
	out, err := objectdiff.MarshalYAML(object.Object)
	if err != nil {
		return fmt.Errorf("%s: %w", c.Subject, err)
	}
	var b bytes.Buffer
	if p.printed {
		b.WriteString("---\n")
	}
	if c.Subject.Cluster != "" {
		b.WriteString("# cluster: " + redact.EscapeLine(c.Subject.Cluster) + "\n")
	}
	if masked {
		b.WriteString(maskedNote)
	}
	b.Write(out)
	p.printed = true
	_, err = p.Out.Write(b.Bytes())
	return err
}

// Close has nothing to add.
func (p *Manifests) Close() error { return nil }

// Patches prints an RFC 6902 patch for each changed object: a stream of JSON
// values, one a line, each naming its object.
type Patches struct{ output.Options }

// NewPatches returns a printer of patches.
func NewPatches(o output.Options) *Patches { return &Patches{o} }

type objectPatch struct {
	Object engine.ObjectKey `json:"object"`
	Patch  []diff.Edit      `json:"patch"`
}

// Print prints the patch of an object that would change. An object that is not
// there yet is added whole.
func (p *Patches) Print(s output.Shown) error {
	c, ok := s.Event().(output.Evaluated)
	if !ok {
		return nil
	}
	if !c.Changed() {
		return nil
	}
	out, err := MarshalLine(objectPatch{Object: c.Subject, Patch: p.patch(c.Change)})
	if err != nil {
		return fmt.Errorf("%s: writing JSON: %w", c.Subject, err)
	}
	_, err = io.WriteString(p.Out, out)
	return err
}

// Close has nothing to add.
func (p *Patches) Close() error { return nil }

// patch returns the edits of the fields that change; what the engine takes for the same
// is none.
func (p *Patches) patch(c *engine.Change) []diff.Edit {
	before, after := c.Before, c.After
	if !p.ShowSecrets {
		after = engine.HideObject(after) // with the same mask whether the value changes or not
	}
	switch {
	case after == nil:
		return []diff.Edit{{Op: diff.OpRemove}}
	case before == nil:
		return []diff.Edit{{Op: diff.OpAdd, Value: after.Object}}
	}
	return diff.Edits(before.Object, diff.Subset(before.Object, after.Object, c.Fields, nil))
}
