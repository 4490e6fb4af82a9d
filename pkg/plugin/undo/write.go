package undo

import (
	"context"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/diff"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/apply/request"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/journal"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/redact"
)

// Object is one object that a run wrote to.
type Object struct {
	Object engine.ObjectKey
	// ResourceVersion is the last one that is known of the object.
	ResourceVersion string
	// Applied reports that one of the writes was a server-side apply.
	Applied bool
	// Writes are in the order in which they were made.
	Writes []Write
}

// Write is one write of an object.
type Write struct {
	// Partial is the object before the write and as the server answered; where the
	// write is InDoubt, as it answered to the dry run.
	diff.Partial
	// ResourceVersion is the object's after the write; empty where it is InDoubt.
	ResourceVersion string
	// InDoubt reports that it is not recorded whether the server stored the write.
	InDoubt bool
}

// Objects returns the objects that a run wrote to, or may have written to, in the order
// of its journal.
func Objects(j *journal.Journal) []Object {
	var out []Object
	for i := range j.Entries {
		e := &j.Entries[i]
		o := Object{Object: e.Object}
		for _, r := range e.Results {
			if r.Written {
				o.Writes = append(o.Writes, Write{Partial: r.Partial, ResourceVersion: r.ResourceVersion})
				o.ResourceVersion = r.ResourceVersion
			}
			if o.Object.UID == "" {
				o.Object.UID = r.UID
			}
		}
		o.Applied = slices.ContainsFunc(e.Attempts, func(a journal.Attempt) bool { return a.Method == request.Apply })
		o.Writes = append(o.Writes, inDoubt(e)...)
		if len(o.Writes) > 0 {
			out = append(out, o)
		}
	}
	return slices.Clip(out)
}

// teach has the masker learn the values of an object, and those that will be put back,
// that belong to a Secret by the journal. No policy is evaluated from which it could
// learn them.
func (o *Object) teach(m *redact.Masker, live *unstructured.Unstructured) {
	for _, w := range o.Writes {
		for _, f := range w.Fields {
			if value, ok := diff.Lookup(live.Object, f.Path); ok && (f.Withheld || f.Secret) {
				m.LearnValue(value)
			}
			if f.Secret {
				from, to := w.Contents(f)
				m.LearnValue([]any{from, to})
			}
		}
	}
}

// secret are the places in the object whose values, or the names in which, were made of a Secret by the journal.
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

// under returns a context for the requests about the object, which are logged without what was made of a Secret.
func (o *Object) under(ctx context.Context) context.Context {
	if len(o.secret()) == 0 {
		return ctx
	}
	return engine.WithSecret(ctx)
}

// inDoubt returns the last attempts on each endpoint of an object that may have been
// stored: those without a result, and those after which the object was found to be
// as wanted already.
func inDoubt(e *journal.Entry) []Write {
	var out []Write
	for i, a := range e.Attempts {
		later := func(b journal.Attempt) bool { return b.Subresource == a.Subresource }
		if slices.ContainsFunc(e.Attempts[i+1:], later) {
			continue
		}
		settled := false
		for _, r := range e.Results {
			if r.Subresource == a.Subresource {
				settled = r.Written || r.Failed
			}
		}
		if !settled {
			out = append(out, Write{Partial: a.Partial, InDoubt: true})
		}
	}
	return out
}
