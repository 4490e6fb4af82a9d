package journal

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"time"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/diff"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/redact"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/write/plan"
)

// Writer appends to a journal. Every method except Plan and Result returns once its record is on disk;
// concurrent calls share the flush. After an error all further calls fail: a run must not write without its
// journal. It is safe for concurrent use.
type Writer struct {
	path    string
	file    disk
	secrets bool          // record their values
	entries []*plan.Entry // nil for finished runs
	shared  bool          // by several consecutive runs

	mu       sync.Mutex
	size     int64
	finished *sync.Cond      // a sync has ended
	appended int             // records so far ...
	durable  int             // number of them on disk
	open     map[int]Attempt // the last attempt of each entry that is on disk and has no result
	syncing  bool
	err      error
}

// disk is the file of a Writer.
type disk interface {
	io.WriteCloser
	Sync() error
}

// gather is how long a flush waits for further attempts while requests are under way. A run with the maximum
// of concurrent requests loses nothing, and flushes are the largest cost of a journal.
const gather = 4 * time.Millisecond

// Error reports a journal that cannot be read, written or trusted.
type Error struct {
	Path string
	Line int // from 1, in a damaged journal; else 0
	Err  error
}

// Error is "journal FILE: reason", or "journal FILE, line N: reason". The reason may quote a damaged line,
// and is truncated.
func (e *Error) Error() string {
	if e.Line > 0 {
		return fmt.Sprintf("journal %s, line %d: %.400v", e.Path, e.Line, e.Err)
	}
	return fmt.Sprintf("journal %s: %v", e.Path, e.Err)
}

// Unwrap returns the reason.
func (e *Error) Unwrap() error { return e.Err }

// Create creates a journal, and its directory if necessary. The file must not exist. The error is an *Error.
func Create(path string, h Header) (*Writer, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, &Error{Path: path, Err: err}
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL|os.O_APPEND, 0o600)
	if errors.Is(err, os.ErrExist) {
		err = errors.New("the file exists already, and a journal is never written over; name another one")
	}
	if err != nil {
		return nil, &Error{Path: path, Err: err}
	}
	if err := lock(path, f); err != nil {
		return nil, err
	}
	w := newWriter(path, f)
	w.secrets, h.APIVersion = h.Secrets, plan.APIVersion
	if err := w.appendDurable(record{Header: &h}); err != nil {
		return nil, err
	}
	if err := syncDirectory(filepath.Dir(path)); err != nil {
		return nil, &Error{Path: path, Err: err}
	}
	return w, nil
}

// Resume reads a journal and opens it for appending, beginning with Resumed. A torn last line was never
// reported as recorded, and is removed. The error is an *Error.
func Resume(path string) (*Journal, *Writer, error) {
	f, err := open(path, os.O_RDWR|os.O_APPEND)
	if err != nil {
		return nil, nil, err
	}
	if err := lock(path, f); err != nil {
		return nil, nil, err
	}
	j, err := Parse(path, f)
	if err == nil {
		if failed := f.Truncate(j.size); failed != nil {
			err = &Error{Path: path, Err: failed}
		}
	}
	if err != nil {
		_ = f.Close() // the returned error has priority
		return nil, nil, err
	}
	w := newWriter(path, f)
	for _, e := range j.Entries {
		w.entries = append(w.entries, e.Entry)
	}
	w.secrets = j.Header.Secrets
	return j, w, nil
}

// Resumed records that a later run resumes the journal.
func (w *Writer) Resumed(r Resumed) error {
	r.Time = time.Now()
	return w.appendDurable(record{Resumed: &r})
}

func newWriter(path string, f disk) *Writer {
	w := &Writer{path: path, file: f, open: map[int]Attempt{}}
	w.finished = sync.NewCond(&w.mu)
	return w
}

// covered returns a change of an entry as recorded: with or without the values of Secrets.
func (w *Writer) covered(t diff.Partial, entry int) diff.Partial {
	e := w.entries[entry]
	t = redact.MarkedBy(e.Secrets(), t, e.Object)
	if w.secrets {
		return t
	}
	return redact.Partial(t, e.Object)
}

// lock prevents a second run from writing to the same journal. It closes the file on failure.
func lock(path string, f *os.File) error {
	if err := lockFile(f); err != nil {
		_ = f.Close() // the returned error has priority
		return &Error{Path: path, Err: err}
	}
	return nil
}

// Path returns the path of the file.
func (w *Writer) Path() string { return w.path }

// Name returns the name of the run for users: its ID, or the path of a file outside Directory.
func (w *Writer) Name() string { return nameOf(w.path) }

// Plan records a planned entry, which may not be modified any more. It is durable after Begin.
func (w *Writer) Plan(e *plan.Entry) error {
	w.entries = append(w.entries, e)
	recorded := *e
	if w.secrets {
		recorded.Partial = w.covered(e.Partial, len(w.entries)-1)
	} else {
		recorded = e.Masked()
	}
	return w.append(record{Planned: &recorded})
}

// Evaluated sets an entry of a resumed journal as evaluated again: with the values of Secrets, and those
// derived from them, that the journal lacks.
func (w *Writer) Evaluated(entry int, e *plan.Entry) {
	w.entries[entry] = e
}

// Begin ends the planned entries.
func (w *Writer) Begin() error {
	return w.appendDurable(record{Begin: &begin{Entries: len(w.entries), Time: time.Now()}})
}

// Attempt records that a request will be sent.
func (w *Writer) Attempt(a Attempt) error {
	a.Time = time.Now()
	recorded := a
	recorded.Partial = w.covered(a.Partial, a.Entry)
	if err := w.appendDurable(record{Attempt: &recorded}); err != nil {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.open[a.Entry] = a
	return nil
}

// Open returns the last attempt of an entry without a result, including values of Secrets; nil if there is
// none.
func (w *Writer) Open(entry int) *Attempt {
	w.mu.Lock()
	defer w.mu.Unlock()
	if a, is := w.open[entry]; is {
		return &a
	}
	return nil
}

// Result records the result of an entry. It is in the file on return, and on disk with the next durable
// record. If the machine stops in between, the attempt is in doubt.
func (w *Writer) Result(r Result) error {
	w.mu.Lock()
	delete(w.open, r.Entry)
	w.mu.Unlock()
	r.Time = time.Now()
	r.Partial = w.covered(r.Partial, r.Entry)
	if !w.secrets && r.Error != "" && w.entries[r.Entry].HoldsSecrets() {
		r.Error = engine.ErrHidden.Error()
	}
	return w.append(record{Result: &r})
}

// End records that the run is over.
func (w *Writer) End(e End) error {
	e.Time = time.Now()
	clear(w.entries)
	return w.appendDurable(record{End: &e})
}

// Share lets several consecutive runs write to the journal. Finish closes it.
func (w *Writer) Share() { w.shared = true }

// Len returns the number of planned entries.
func (w *Writer) Len() int { return len(w.entries) }

// Size returns the number of bytes written, and the error that ended it.
func (w *Writer) Size() (int64, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.size, w.err
}

// Close closes the file, unless it is shared.
func (w *Writer) Close() error {
	if w.shared {
		return nil
	}
	return w.Finish()
}

// Finish closes the file.
func (w *Writer) Finish() error {
	if err := w.file.Close(); err != nil {
		return &Error{Path: w.path, Err: err}
	}
	return nil
}

// append adds a line to the file: it survives the end of the process.
func (w *Writer) append(r record) error {
	line, err := json.Marshal(r)
	if err != nil {
		return &Error{Path: w.path, Err: err}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.err == nil {
		n, err := w.file.Write(append(line, '\n'))
		w.size += int64(n)
		w.failed(err)
	}
	w.appended++
	return w.err
}

// appendDurable adds a line and returns once it is on disk: it survives a crash of the machine.
func (w *Writer) appendDurable(r record) error {
	if err := w.append(r); err != nil {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.sync()
	return w.err
}

// sync flushes all records so far to disk. It is called with the lock held, but releases it meanwhile, so
// that others can add records for the next sync.
func (w *Writer) sync() {
	for upTo := w.appended; w.durable < upTo && w.err == nil; {
		if w.syncing {
			w.finished.Wait()
			continue
		}
		w.syncing = true
		if len(w.open) > 0 {
			w.mu.Unlock()
			time.Sleep(gather)
			w.mu.Lock()
		}
		all := w.appended
		w.mu.Unlock()
		err := w.file.Sync()
		w.mu.Lock()
		if w.failed(err); w.err == nil {
			w.durable = all
		}
		w.syncing = false
		w.finished.Broadcast()
	}
}

func (w *Writer) failed(err error) {
	if err != nil && w.err == nil {
		w.err = &Error{Path: w.path, Err: err}
	}
}

// syncDirectory makes the name of a new file durable, if the directory can be synced.
func syncDirectory(path string) error {
	if runtime.GOOS == "windows" {
		return nil
	}
	d, err := os.Open(path)
	if err != nil {
		return err
	}
	defer d.Close() //nolint:errcheck // it was only read
	return d.Sync()
}
