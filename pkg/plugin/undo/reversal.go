// Package undo reverts the writes of a run that its journal recorded.
//
// A value is put back only if the object still has the value of the server's response to the write, including
// changes by admission. Later changes by other clients are kept, and reported with their owner. List elements
// are found by their key, lists without keys are put back whole, and the order is restored among the
// remaining elements.
package undo

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/diff"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/evaluation"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/apply"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/cluster"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/impact"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/output"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/process"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/redact"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/write"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/write/journal"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/write/plan"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/write/request"
)

// Options are the settings of an undo, which reverts the writes of one run.
type Options struct {
	Header  journal.Header // of the run's journal
	Objects []Object
	Schemas engine.Reader
	// Executor writes. Its Writer is set to read no stale state, and to take no ownership.
	Executor *write.Executor
	apply.Printers

	fresh *freshServer
}

// Run shows the restored values, verifies, asks and writes, and returns the exit code. The error says why
// nothing, or not everything, was tried; failures of objects are results.
func (o *Options) Run(ctx context.Context) (int, error) {
	writer := o.Executor.Writer
	o.fresh = newFreshServer(writer.Server)
	writer.Server = o.fresh
	writer.PatchOnly = request.Reason{Kind: request.Ownership}
	report := o.Executor.Report
	o.Executor.Report = func(w *write.Result) error { // the run's ownership of its fields is expected
		w.Takeovers = slices.DeleteFunc(w.Takeovers, func(t request.Takeover) bool {
			return t.Manager == o.Header.FieldManager
		})
		return report(w)
	}
	summary, err := o.preview(ctx)
	if err != nil {
		return apply.WriteReports(o.Reports, process.ExitNothing, write.NothingWritten(err))
	}
	tally, err := o.Executor.Run(ctx)
	if err == nil && !o.Executor.IsDryRun() {
		err = o.release(ctx)
	}
	code := process.WrittenCode(tally, summary.Incomplete > 0 || err != nil)
	if err == nil || len(tally.Outcomes) > 0 {
		err = errors.Join(o.Shown.Close(), err)
	}
	return apply.WriteReports(o.Reports, code, err)
}

// preview prints the changes, and keeps a task for each.
func (o *Options) preview(ctx context.Context) (evaluation.Summary, error) {
	summary := evaluation.NewSummary([]engine.RuleRef{o.rule()})
	err := write.ForEach(len(o.Objects), o.Executor.Concurrency,
		func(i int) (*engine.Change, error) {
			of := &o.Objects[i]
			o.fresh.know(of.Object, of.ResourceVersion)
			return o.change(ctx, of)
		},
		func(i int, c *engine.Change) (enough bool, _ error) {
			if c == nil {
				return true, nil
			}
			summary.Add(c)
			if c.Changed() {
				o.Executor.Keep(o.task(&o.Objects[i], c), c) // not read again unless somebody writes it
			}
			return false, o.Print(output.Evaluated{Change: c})
		})
	if err != nil {
		return *summary, err
	}
	return *summary, o.Print(output.Summary{Summary: *summary})
}

// rule returns the cause in previews and results of an undo.
func (o *Options) rule() engine.RuleRef {
	return engine.RuleRef{Dialect: "undo", Policy: o.Header.ID}
}

// errUnfounded reports a tampered journal.
var errUnfounded = errors.New("the journal gives it values that may not be shown, and says that it keeps no values of Secrets (--journal-secrets)")

// unseen warns of masked values that no evaluation derives again: they are written from the journal.
const unseen engine.Warning = "values that may not be shown are put back as the journal has them; --show-secrets shows them"

// change returns the change that reverts one object.
func (o *Options) change(ctx context.Context, of *Object) (*engine.Change, error) {
	c := &engine.Change{Subject: of.Object, Scoped: true}
	live, err := o.Executor.Writer.Server.Get(ctx, c.Subject)
	switch {
	case apierrors.IsNotFound(err):
		o.step(c, engine.Failed, errors.New("the object no longer exists"))
		return c, nil
	case err != nil:
		return nil, fmt.Errorf("%s: %w", c.Subject, err)
	}
	if of.Object.UID != "" && of.Object.UID != live.GetUID() {
		c.Before, c.After = live, live
		c.Target = engine.Target{Key: c.Subject, Object: live}
		o.step(c, engine.Failed, errors.New("the object was deleted, and another one has its name now"))
		return c, nil
	}
	return o.restore(ctx, of, live), nil
}

// restore returns the change that restores an object as far as possible, and reports the other fields.
func (o *Options) restore(ctx context.Context, of *Object, live *unstructured.Unstructured) *engine.Change {
	c := &engine.Change{Subject: of.Object, Scoped: true, Before: live, After: live}
	c.Target = engine.Target{Key: c.Subject, Object: live}
	put := of.Restore(live)
	rule, typ := o.rule(), diff.TypeOf(ctx, o.Schemas, live.GroupVersionKind())
	for _, f := range diff.Compare(live.Object, put.Want.Object, typ) {
		f.Writer = &rule
		c.Fields = append(c.Fields, f)
	}
	if len(c.Fields) > 0 {
		c.After = put.Want
		o.step(c, engine.Changed, nil)
	} else {
		o.step(c, engine.Unchanged, nil)
	}
	for _, kept := range put.Kept {
		o.step(c, engine.Failed, kept)
	}
	if c.Changed() {
		c.Impacts = impact.Rollout(c)
	}
	evaluation.Hide(c, of.secret())
	if !c.Changed() {
		return c
	}
	if !o.Header.Secrets && givesUnseen(c.Fields, c.ToShow().Fields) {
		c = &engine.Change{Subject: of.Object, Scoped: true, Before: live, After: live, Target: c.Target}
		o.step(c, engine.Failed, errUnfounded)
		return c
	}
	if givesUnseen(c.Fields, redact.Partial(diff.PartialOf(c.ToShow()), c.Subject).Fields) {
		for _, steps := range [][]engine.Step{c.Steps, c.ToShow().Steps} {
			steps[0].Warnings = []engine.Warning{unseen}
		}
	}
	return c
}

// givesUnseen reports whether a change sets a value or place that is masked in the output. Removed values are
// the cluster's.
func givesUnseen(fields, shown []engine.FieldChange) bool {
	for i, f := range shown {
		removed := f.Kind == engine.Removed && fields[i].Kind == engine.Removed && f.Path.Equals(fields[i].Path)
		if f.Withheld && !removed {
			return true
		}
	}
	return false
}

func (o *Options) step(c *engine.Change, outcome engine.Outcome, why error) {
	s := engine.Step{Rule: o.rule(), Outcome: outcome, Err: why}
	if outcome == engine.Changed {
		s.After = c.After
		s.Fields = c.Fields
	}
	c.Steps = append(c.Steps, s)
}

// task restores one object. It keeps no copy of the object, which is read again.
func (o *Options) task(of *Object, c *engine.Change) *write.Task {
	entry := plan.NewEntry(c)
	t := &write.Task{
		Key: entry.Object, Rules: []engine.RuleRef{o.rule()}, Entry: &entry,
		Endpoints: write.EndpointsOf(c),
	}
	for _, p := range of.secret() {
		t.Secrets = append(t.Secrets, engine.FieldChange{Path: p, Secret: true})
	}
	shown := keptPaths(c)
	t.Change = func(ctx context.Context, live *unstructured.Unstructured) (*engine.Change, error) {
		now := o.restore(ctx, of, live)
		if !keptPaths(now).Difference(shown).Empty() {
			return nil, &write.ObjectError{Key: of.Object, Err: errors.New("it was changed while this run was under way; run the command again")}
		}
		return now, nil
	}
	return t
}

// keptPaths returns the fields that the output shows as kept.
func keptPaths(c *engine.Change) *fieldpath.Set {
	out := fieldpath.NewSet()
	for i := range c.Steps {
		var kept Kept
		if errors.As(c.Steps[i].Err, &kept) {
			out.Insert(kept.Path)
		}
	}
	return out
}

// Object is an object that a run wrote, or may have written.
type Object struct {
	Object engine.ObjectKey
	// ResourceVersion is the object's last known one.
	ResourceVersion string
	// Applied is set if one of the writes was a server-side apply.
	Applied bool
	// Writes in their order.
	Writes []Write
}

// Write is one write of an object.
type Write struct {
	// Partial is the object before the write and in the server's response; of the dry run if the write is
	// InDoubt.
	diff.Partial
	// ResourceVersion after the write; empty if it is InDoubt.
	ResourceVersion string
	// InDoubt is set if the journal does not say whether the server stored the write.
	InDoubt bool
}

// Objects returns the written objects in the order of the journal. The journal of a watch may have several
// entries for one object.
func Objects(j *journal.Journal) []Object {
	var out []Object
	places := map[engine.ObjectKey]int{}
	for _, e := range j.Entries {
		o := Object{Object: e.Object, Applied: e.Applied}
		for _, r := range e.Results {
			o.Object.UID = cmp.Or(o.Object.UID, r.UID)
			if r.Written {
				o.ResourceVersion = r.ResourceVersion
				o.Writes = append(o.Writes, Write{Partial: r.Partial, ResourceVersion: r.ResourceVersion})
			}
		}
		for _, a := range e.Attempts { // the last ones, possibly
			o.Writes = append(o.Writes, Write{Partial: a.Partial, InDoubt: true})
		}
		if len(o.Writes) == 0 {
			continue
		}
		key := o.Object
		key.Version = ""
		i, known := places[key]
		if !known {
			places[key] = len(out)
			out = append(out, o)
			continue
		}
		out[i].Applied, out[i].Writes = out[i].Applied || o.Applied, append(out[i].Writes, o.Writes...)
		out[i].ResourceVersion = cmp.Or(o.ResourceVersion, out[i].ResourceVersion)
	}
	return out
}

// secret returns the places whose values or field names the journal marks as derived from a Secret.
func (o *Object) secret() []fieldpath.Path {
	var out []fieldpath.Path
	for _, w := range o.Writes {
		for _, f := range w.Fields {
			switch {
			case f.SecretFrom > 1:
				out = append(out, f.Path[:f.SecretFrom-1])
			case f.Withheld || f.Secret:
				out = append(out, f.Path)
			}
		}
	}
	return out
}

// freshServer reads no state of an object older than a recorded, read or written one. A state before a write
// would look reverted already; no guard catches that, because nothing is sent then. API servers do not serve
// such states, but a cache in front of them may.
type freshServer struct {
	write.Server
	mu    sync.Mutex
	least map[engine.ObjectKey]string // resourceVersions, by names
}

// maxStale limits the reads of an object until its state is fresh.
const maxStale = 10

func newFreshServer(s write.Server) *freshServer {
	return &freshServer{Server: s, least: map[engine.ObjectKey]string{}}
}

// know records a state unless it is older than a recorded one, and reports whether it is older. Versions that
// cannot be compared are not older.
func (f *freshServer) know(key engine.ObjectKey, version string) (stale bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	name := key.Whole()
	order, err := resourceversion.CompareResourceVersion(version, cmp.Or(f.least[name], version))
	if err == nil && order >= 0 {
		f.least[name] = version
	}
	return err == nil && order < 0
}

// Get reads an object.
func (f *freshServer) Get(ctx context.Context, key engine.ObjectKey) (*unstructured.Unstructured, error) {
	for attempt := 1; ; attempt++ {
		live, err := f.Server.Get(ctx, key)
		switch {
		case ctx.Err() != nil:
			return nil, write.ErrInterrupted
		case err != nil:
			return nil, err
		case !f.know(key, live.GetResourceVersion()):
			return live, nil
		case attempt == maxStale:
			return nil, fmt.Errorf("%s: the server answers with a state from before the run", key)
		}
		cluster.Pause(ctx, 20*time.Millisecond)
	}
}

// Patch sends a patch.
func (f *freshServer) Patch(ctx context.Context, key engine.ObjectKey,
	p cluster.Patch,
) (*unstructured.Unstructured, error) {
	answer, err := f.Server.Patch(ctx, key, p)
	if err == nil && !p.DryRun {
		f.know(key, answer.GetResourceVersion())
	}
	return answer, err
}
