package test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/diff"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/file"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/fix/edit"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/input"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/output"
)

// update makes results pass that fail only for their wanted object, by writing the actual object instead.
func (o *Options) update(ctx context.Context, results []output.Tested,
	wanted map[*engine.Change]*engine.Document,
) {
	o.writing.Lock()
	defer o.writing.Unlock()
	for i := range results {
		t := &results[i]
		d := wanted[t.Difference]
		if t.Difference == nil || d == nil {
			continue
		}
		written, err := o.rewrite(ctx, d, t.Difference)
		if err != nil {
			t.Note = "not updated: " + err.Error()
			continue
		}
		if written {
			fmt.Fprintf(o.factory.Streams.ErrOut, "updated: %s: %s\n", d.Origin, t.Object)
		}
		t.Verdict, t.Text, t.Difference, t.Places = output.TestPassed, "", nil, nil
	}
}

// rewrite writes a change of a document into its file, and keeps all other bytes. It reports false if
// another result has already written it.
func (o *Options) rewrite(ctx context.Context, d *engine.Document, c *engine.Change) (bool, error) {
	if !o.secrets && (c.Shown != nil || engine.IsSecret(c.After)) {
		return false, errors.New("it holds values of a Secret, or values derived from one; --show-secrets writes these")
	}
	path := d.Origin[:strings.LastIndexByte(d.Origin, ':')]
	if !file.Inside(path, o.paths) {
		return false, fmt.Errorf("%s is not in a directory that is tested", path)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return false, err
	}
	now, err := input.ReadText(ctx, path, text)
	if err != nil {
		return false, err
	}
	after := diff.Subset(d.Object().Object, c.After.Object, c.Fields, nil)
	documents := make([]edit.Document, len(now))
	found := false
	for i, at := range now {
		documents[i] = edit.Document{Before: at.Object().Object, After: at.Object().Object}
		switch {
		case at.Key.Named() != d.Key.Named():
		case diff.Same(at.Object().Object, after): // written for another result
			return false, nil
		case diff.Same(at.Object().Object, d.Object().Object):
			documents[i].After, found = after, true
		}
	}
	if !found {
		return false, fmt.Errorf("%s wants another object at another place, or has changed: results that differ need files of their own", path)
	}
	if text, err = edit.Apply(ctx, text, documents); err != nil {
		return false, err
	}
	return true, file.Rewrite(path, text)
}
