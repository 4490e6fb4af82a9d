package journal

import (
	"errors"
	"hash/maphash"
	"os"
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/diff"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/apply/request"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/plan"
)

// Written is what a run wrote, as its journal says. The changes stay in the file, so that an object takes little
// memory until it is asked for. It is safe for concurrent use, but for Keep and Close.
type Written struct {
	Path   string
	Header Header

	file    *os.File
	seed    maphash.Seed
	objects []writtenObject
}

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

// writtenObject is a WrittenObject in the file. There may be very many.
type writtenObject struct {
	kind       *engine.ObjectKey // what its key has in common with those of its kind and namespace
	name       string
	uid        types.UID // empty where it is identified
	writes     []place   // the results, and the last attempt on each endpoint that none settles
	identified bool      // by one of these
	applied    bool
}

// key lacks the UID of an object that is identified by a write.
func (o *writtenObject) key() engine.ObjectKey {
	key := *o.kind
	key.Name, key.UID = o.name, o.uid
	return key
}

// place is where a record is in the file.
type place struct {
	offset     int64
	sum        uint64 // of the line, as it was when it was checked
	size       int32
	doubtful   bool
	part       bool // of the change, to the one subresource that it may be sent to
	identifies bool // the object: it has its UID
}

var errRewritten = errors.New("the file was changed while it was being undone; run the command again")

// ReadWritten reads a journal as Read does, with the same checks and errors. It has to be closed.
func ReadWritten(path string) (*Written, error) {
	f, err := open(path)
	if err != nil {
		return nil, err
	}
	w := &Written{Path: path, file: f, seed: maphash.MakeSeed()}
	p := newParser(path)
	p.index = &index{Written: w}
	j, err := p.parse(f)
	if err != nil {
		_ = f.Close() // the error that is returned comes first
		return nil, err
	}
	w.Header = j.Header
	w.objects = slices.Clone(slices.DeleteFunc(w.objects, func(o writtenObject) bool { return len(o.writes) == 0 }))
	return w, nil
}

// Close closes the file.
func (w *Written) Close() error { return w.file.Close() }

// Len returns the number of objects.
func (w *Written) Len() int { return len(w.objects) }

// Keep leaves out the objects for which a function returns false, by their keys without UIDs.
func (w *Written) Keep(wanted func(engine.ObjectKey) bool) {
	w.objects = slices.DeleteFunc(w.objects, func(o writtenObject) bool {
		key := o.key()
		key.UID = ""
		return !wanted(key)
	})
}

// Object reads an object, of those that are left in the order of the journal. The error is an *Error.
func (w *Written) Object(i int) (WrittenObject, error) {
	o := &w.objects[i]
	out := WrittenObject{Object: o.key(), Applied: o.applied}
	var doubts []Write // which may have been made last
	for _, at := range o.writes {
		r, err := w.record(at)
		switch {
		case err != nil:
			return WrittenObject{}, err
		case at.doubtful:
			doubts = append(doubts, Write{Partial: r.Attempt.Partial, InDoubt: true})
		default:
			if at.identifies {
				out.Object.UID = r.Result.UID
			}
			out.ResourceVersion = r.Result.ResourceVersion
			out.Writes = append(out.Writes, Write{Partial: r.Result.Partial, ResourceVersion: r.Result.ResourceVersion})
		}
	}
	out.Writes = append(out.Writes, doubts...)
	return out, nil
}

// record reads a record that was read before.
func (w *Written) record(at place) (*record, error) {
	line := make([]byte, at.size)
	if _, err := w.file.ReadAt(line, at.offset); err != nil || maphash.Bytes(w.seed, line) != at.sum {
		return nil, &Error{Path: w.Path, Err: errRewritten}
	}
	r, err := readRecord(line)
	switch {
	case err != nil:
	case r.Result != nil:
		err = r.Result.Validate() // which gives the fields their values
	default:
		err = r.Attempt.Validate()
	}
	if err != nil {
		return nil, &Error{Path: w.Path, Err: err}
	}
	return r, nil
}

// index makes a Written, record by record.
type index struct {
	*Written
	here place // of the record that is being read
}

func (x *index) at(offset int64, line []byte) {
	x.here = place{offset: offset, size: int32(len(line)), sum: maphash.Bytes(x.seed, line)} //nolint:gosec // maxLine at most
}

func (x *index) plan(e *plan.Entry, kind *engine.ObjectKey) {
	x.objects = append(x.objects, writtenObject{kind: kind, name: e.Object.Name, uid: e.Object.UID})
}

func (x *index) attempt(a *Attempt) {
	o, at := &x.objects[a.Entry], x.here
	at.doubtful, at.part = true, a.Subresource != ""
	o.settle(at.part)
	o.writes, o.applied = append(o.writes, at), o.applied || a.Method == request.Apply
}

// result takes a result. One that neither wrote nor failed found the object to be as wanted already, perhaps because of
// the attempt.
func (x *index) result(r *Result) {
	o, at := &x.objects[r.Entry], x.here
	if r.Written || r.Failed {
		o.settle(r.Subresource != "")
	}
	if o.uid == "" && !o.identified {
		o.uid = r.UID
	}
	if r.Written {
		if o.uid != "" && o.uid == r.UID {
			at.identifies, o.identified, o.uid = true, true, ""
		}
		o.writes = append(o.writes, at)
	}
}

// settle takes away the doubt about the attempt on an endpoint.
func (o *writtenObject) settle(part bool) {
	o.writes = slices.DeleteFunc(o.writes, func(at place) bool { return at.doubtful && at.part == part })
}
