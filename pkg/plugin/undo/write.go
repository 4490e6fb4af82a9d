package undo

import (
	"context"

	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/journal"
)

// Object is one object that a run wrote to.
type Object journal.WrittenObject

// Objects returns what a run wrote to, as its journal says.
func Objects(j *journal.Journal) []Object {
	var out []Object
	for _, o := range j.Written() {
		out = append(out, Object(o))
	}
	return out
}

// Write is one write of an object.
type Write = journal.Write

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
