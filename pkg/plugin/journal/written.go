package journal

import (
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/diff"
)

// WrittenObject is one object that a run wrote to, or may have written to.
type WrittenObject struct {
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

// Written returns what the run wrote, in the order of the journal.
func (j *Journal) Written() []WrittenObject {
	var out []WrittenObject
	for i := range j.Entries {
		if o := j.Entries[i].written(); len(o.Writes) > 0 {
			out = append(out, o)
		}
	}
	return out
}

func (e *Entry) written() WrittenObject {
	out := WrittenObject{Object: e.Object, Applied: e.Applied}
	for i := range e.Results {
		r := &e.Results[i]
		if out.Object.UID == "" {
			out.Object.UID = r.UID
		}
		if r.Written {
			out.ResourceVersion = r.ResourceVersion
			out.Writes = append(out.Writes, Write{Partial: r.Partial, ResourceVersion: r.ResourceVersion})
		}
	}
	for i := range e.Attempts { // which may have been made last
		out.Writes = append(out.Writes, Write{Partial: e.Attempts[i].Partial, InDoubt: true})
	}
	return out
}
