package objectdiff

import (
	"cmp"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/diff"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/redact"
)

// DefaultContextLines are shown around each line that differs.
const DefaultContextLines = 3

// Differ compares the states of objects. It is used by one goroutine at a time.
type Differ struct {
	// ContextLines are shown around each line that differs; 0 stands for
	// DefaultContextLines, a negative number for none.
	ContextLines int
	// Names are what the two states are called; empty ones stand for "before" and "after".
	Names UnifiedNames

	yaml YAMLWriter
}

// Unified returns the unified diff of the two states' YAML, which is empty if they are
// the same text. Others are differences between them besides those of the change, which are not shown. Characters are escaped before they are
// compared, so that a line break in a name cannot forge a line.
func (d *Differ) Unified(c *engine.Change, others []engine.FieldChange) (string, error) {
	before, after, err := d.Texts(c, others)
	if err != nil {
		return "", err
	}
	name := redact.EscapeLine(c.Subject.String())
	names := UnifiedNames{Before: name + " (" + cmp.Or(d.Names.Before, "before") + ")", After: name + " (" + cmp.Or(d.Names.After, "after") + ")"}
	return unifiedDiff(names, before, after, d.lines()), nil
}

func (d *Differ) lines() int {
	if d.ContextLines == 0 {
		return DefaultContextLines
	}
	return max(d.ContextLines, 0)
}

// Texts returns the two states as they may be shown, as YAML; that of a state in which
// there is no object is empty. They differ in the fields of the change alone: what
// is equal to the server is no difference to a reader.
func (d *Differ) Texts(c *engine.Change, others []engine.FieldChange) (before, after *Document, err error) {
	to := c.After
	if c.Before != nil && c.After != nil {
		wanted, records := engine.SplitRecords(c.Fields)
		to = &unstructured.Unstructured{Object: diff.Subset(c.Before.Object, c.After.Object, wanted, slices.Concat(records, others))}
	}
	if before, err = d.text(redact.Trim(c.Before, c.Fields, redact.Readable)); err == nil {
		after, err = d.text(redact.Trim(to, c.Fields, redact.Readable))
	}
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", c.Subject, err)
	}
	return before, after, nil
}

func (d *Differ) text(u *unstructured.Unstructured) (*Document, error) {
	if u == nil {
		return &Document{}, nil
	}
	out, err := d.yaml.Object(u.Object)
	out.Text = redact.EscapeLines(out.Text) // each line stays one
	return out, err
}
