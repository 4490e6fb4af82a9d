package journal

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"reflect"
	"slices"
	"strings"
	"unicode"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/diff"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/apply/request"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/file"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/memory"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/plan"
)

// Journal is the record of a run, as read from a file.
type Journal struct {
	Path    string
	Header  Header
	Entries []Entry
	// Begun reports that the planned entries are complete. Before that nothing was
	// written.
	Begun   bool
	Resumed []Resumed
	// End is nil where the run was cut off.
	End *End
	// Torn reports that the last line is incomplete, as after a kill.
	Torn bool

	size    int64         // of what is whole
	kept    *plan.Entries // where the Entries do not have them
	secrets bool          // an entry was made of a Secret
}

// Planned returns an entry as it was planned. The error is that of a temporary file.
func (j *Journal) Planned(i int) (plan.Entry, error) {
	if j.kept != nil {
		return j.kept.At(i)
	}
	return *j.Entries[i].Entry, nil
}

// HoldsSecrets reports whether an entry has values that were made of a Secret, or withholds them.
func (j *Journal) HoldsSecrets() bool { return j.secrets }

// Close frees what the entries take. There are none of them after it.
func (j *Journal) Close() error {
	j.Entries = nil
	return j.kept.Close()
}

// Entry is one object of a run with its attempts and results.
type Entry struct {
	// Entry is as it was planned; nil at a glance, and in a journal that is resumed, of which Planned has it.
	*plan.Entry
	// Attempts has the requests, and Results what came of the entry, in their order. An attempt whose result
	// is known has its fields alone: the rest is in the result. At a glance, and in a journal that is resumed, there are the attempts
	// whose result is not known, and of the results how far the entry came by them, and the error.
	Attempts []Attempt
	Results  []Result

	kind  *engine.ObjectKey // what its key has in common with those of its kind and namespace
	doubt []string          // subresources with an attempt and no result after it
}

// Status is how far an entry has come.
type Status string

// The statuses.
const (
	// Planned: nothing was sent yet.
	Planned Status = "planned"
	// InDoubt: a request was about to be sent, and whether the server stored it is
	// not recorded. Doubt gives the attempt.
	InDoubt Status = "in-doubt"
	// Partial: the object was written, and its status is still to be.
	Partial Status = "partial"
	Done    Status = "done"
	Failed  Status = "failed"
)

// Status returns how far the entry has come.
func (e *Entry) Status() Status {
	switch {
	case len(e.doubt) > 0:
		return InDoubt
	case len(e.Results) == 0:
		return Planned
	}
	switch last := e.Results[len(e.Results)-1]; {
	case last.Failed:
		return Failed
	case last.More:
		return Partial
	}
	return Done
}

// Doubt returns the last attempt without a recorded result, or nil.
func (e *Entry) Doubt() *Attempt {
	for i := len(e.Attempts) - 1; i >= 0; i-- {
		if slices.Contains(e.doubt, e.Attempts[i].Subresource) {
			return &e.Attempts[i]
		}
	}
	return nil
}

// sends reports whether a part of the change of an object may be sent to a subresource; "" is the
// object itself.
func sends(object *engine.ObjectKey, subresource string) bool {
	return subresource == "" || subresource == object.Subresource || object.Subresource == "" && subresource == request.StatusSubresource
}

// Count counts the entries by status.
func (j *Journal) Count() map[Status]int {
	out := map[Status]int{}
	for i := range j.Entries {
		out[j.Entries[i].Status()]++
	}
	return out
}

// Bounds of what is read.
const (
	maxLine = 32 << 20
	maxSize = 1 << 30
)

var (
	errLongLine  = fmt.Errorf("a record is larger than %d MiB", maxLine>>20)
	errTooLarge  = fmt.Errorf("larger than %d MiB", maxSize>>20)
	errNoJournal = errors.New("not a journal")
	errLocked    = errors.New("another run is writing to it")
)

// DamagedError is the error for a journal that cannot be trusted.
type DamagedError struct {
	Path string
	Line int // from 1
	Err  error
}

// Error is "journal FILE, line N: reason". What the file holds may be quoted in the
// reason, which is cut.
func (e *DamagedError) Error() string {
	return fmt.Sprintf("journal %s, line %d: %.400v", e.Path, e.Line, e.Err)
}

// Unwrap returns the reason.
func (e *DamagedError) Unwrap() error { return e.Err }

// Read reads a journal that other users cannot have written. A last line that is not
// whole is what a kill leaves behind, and is skipped. The error is an *Error, or a
// *DamagedError.
func Read(path string) (*Journal, error) {
	f, err := open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close() //nolint:errcheck // it was only read
	return Parse(path, f)
}

// open opens a journal that other users cannot have written.
func open(path string) (*os.File, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, &Error{Path: path, Err: errors.Unwrap(err)}
	}
	if err := file.CheckOwner(f); err != nil {
		_ = f.Close() // the error that is returned comes first
		return nil, &Error{Path: path, Err: err}
	}
	return f, nil
}

// Glance is Read without the contents of entries, attempts and results: it returns
// which run it is and how far its entries have come, in a fraction of the time. Anybody
// may have written it.
func Glance(path string) (*Journal, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, &Error{Path: path, Err: errors.Unwrap(err)}
	}
	defer f.Close() //nolint:errcheck // it was only read
	p := parser{Journal: Journal{Path: path}, brief: true}
	return p.parse(f)
}

// Parse reads a journal from in; the path is for messages.
func Parse(path string, in io.Reader) (*Journal, error) {
	return newParser(path).parse(in)
}

func (p *parser) parse(in io.Reader) (*Journal, error) {
	lines := bufio.NewReaderSize(in, 1<<16)
	for number := 1; ; number++ {
		line, err := readLine(lines)
		switch {
		case errors.Is(err, io.EOF):
			p.Torn = p.Torn || len(line) > 0
			return p.finish(number)
		case err != nil && errors.Is(err, errLongLine):
			return nil, &DamagedError{Path: p.Path, Line: number, Err: err}
		case err != nil:
			return nil, &Error{Path: p.Path, Err: err}
		}
		if err := p.spend(line); err != nil {
			return nil, &DamagedError{Path: p.Path, Line: number, Err: err}
		}
		if err := p.line(line); err != nil {
			if _, end := lines.Peek(1); number > 1 && errors.Is(end, io.EOF) && isTorn(err) {
				p.Torn = true // a crash of the machine may leave rubbish up to the end
				return p.finish(number)
			}
			return nil, &DamagedError{Path: p.Path, Line: number, Err: err}
		}
		if p.size += int64(len(line)); p.size > maxSize {
			return nil, &DamagedError{Path: p.Path, Line: number, Err: errTooLarge}
		}
	}
}

// nodesIndexed is what an index keeps of a line at most, as values by the estimate of a memory.Budget. What is resumed keeps as much,
// and so does a glance.
const nodesIndexed = 4

// spend takes what a line becomes, as far as it is kept, from the budget of the journal.
func (p *parser) spend(line []byte) error {
	switch {
	case p.index != nil:
		p.index.at(p.size, line)
	case !p.briefly():
		return p.Spend(memory.Nodes(line), len(line))
	}
	p.here = line
	if err := new(memory.Budget).Spend(memory.Nodes(line), len(line)); err != nil {
		return err
	}
	return p.Spend(nodesIndexed, 0)
}

// briefly reports whether of what came of an entry only that is kept by which it goes on.
func (p *parser) briefly() bool { return p.brief || p.kept != nil }

// keep takes all that the line becomes from the budget.
func (p *parser) keep() error { return p.Spend(memory.Nodes(p.here), len(p.here)) }

// readLine reads a line with its end. With io.EOF it is not whole.
func readLine(in *bufio.Reader) ([]byte, error) {
	var line []byte
	for {
		part, err := in.ReadSlice('\n')
		line = append(line, part...)
		if len(line) > maxLine {
			return nil, errLongLine
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return line, err
		}
	}
}

// isTorn reports whether a line is no JSON at all.
func isTorn(err error) bool {
	var syntax *json.SyntaxError
	return errors.As(err, &syntax)
}

// parser builds a journal record by record.
type parser struct {
	Journal
	memory.Budget
	brief bool   // leave out the contents
	index *index // has what was written; nil for all
	here  []byte // the line that is being read
	seen  *engine.Digests[engine.ObjectKey]
	kinds kinds // of the entries
	// common has what the changes and results of many objects have in common.
	common diff.Common
}

func newParser(path string) *parser {
	return &parser{Journal: Journal{Path: path}, seen: engine.NewDigests[engine.ObjectKey](), kinds: kinds{}}
}

func (p *parser) finish(lines int) (*Journal, error) {
	if p.size == 0 {
		return nil, &DamagedError{Path: p.Path, Line: lines, Err: errNoJournal}
	}
	j := p.Journal // without what it was read with
	return &j, nil
}

// firstFormat is that of journals whose header does not name one.
const firstFormat = "mutate.kubectl.dev/v1alpha1"

var (
	errNoHeader    = errors.New("the first record must be the header")
	errNoManager   = errors.New("the header names no field manager")
	errNoID        = errors.New("the header's ID is none: it has other characters than letters and digits")
	errOrder       = errors.New("a record is out of order")
	errOneOf       = errors.New("a line must be exactly one record")
	errNoSuchEntry = errors.New("no such entry")
	errNoSuchPart  = errors.New("its entry is not sent to that subresource")
)

// notOfID reports whether an ID cannot have a character. An ID that were a text could pose as another line where it is shown.
func notOfID(r rune) bool {
	return r != '-' && r != '_' && (r > unicode.MaxASCII || !unicode.IsLetter(r) && !unicode.IsDigit(r))
}

func (p *parser) line(text []byte) error {
	if p.brief {
		return p.record(readBrief(text))
	}
	if p.size == 0 {
		if err := checkFormat(text); err != nil {
			return err
		}
	}
	return p.record(readRecord(text))
}

// checkFormat returns an error for the header of a journal that another version wrote.
func checkFormat(text []byte) error {
	var r struct{ Header *struct{ APIVersion string } }
	if json.Unmarshal(text, &r) != nil || r.Header == nil {
		return nil // readRecord says what is wrong
	}
	err := plan.CheckFormat(cmp.Or(r.Header.APIVersion, firstFormat))
	if err != nil {
		return fmt.Errorf("%w; resume or undo the run with the version that made it", err)
	}
	return nil
}

// record takes a record that was read.
func (p *parser) record(r *record, err error) error {
	if err != nil {
		return err
	}
	if r.count() != 1 {
		return errOneOf
	}
	if first := p.size == 0; first != (r.Header != nil) {
		return errNoHeader
	}
	return p.take(r)
}

func readRecord(text []byte) (*record, error) {
	var r record
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&r); err != nil {
		return nil, err
	}
	if decoder.More() {
		return nil, errOneOf
	}
	return &r, nil
}

func (r *record) count() int {
	n := 0
	for _, set := range []bool{
		r.Header != nil, r.Planned != nil, r.Begin != nil, r.Attempt != nil,
		r.Result != nil, r.Resumed != nil, r.End != nil,
	} {
		if set {
			n++
		}
	}
	return n
}

func (p *parser) take(r *record) error {
	switch {
	case r.Header != nil:
		p.Header = *r.Header
		switch {
		case p.Header.FieldManager == "":
			return errNoManager
		case strings.ContainsFunc(p.Header.ID, notOfID):
			return errNoID
		}
		return p.Header.Run.Validate()
	case r.Planned != nil:
		return p.plan(r.Planned)
	case r.Begin != nil:
		if p.Begun || r.Begin.Entries != p.planned() {
			return errOrder
		}
		p.Begun = true
	case r.Attempt != nil:
		return p.attempt(r.Attempt)
	case r.Result != nil:
		return p.result(r.Result)
	case r.Resumed != nil:
		p.Resumed, p.End = append(p.Resumed, *r.Resumed), nil
	case r.End != nil:
		p.End = r.End
	}
	return nil
}

func (p *parser) plan(e *plan.Entry) error {
	if p.Begun {
		return errOrder
	}
	if p.brief {
		p.Entries = append(p.Entries, Entry{})
		return nil
	}
	kind := p.kinds.of(e.Object)
	if key := e.Object.Named(); !p.seen.Add(key) {
		return fmt.Errorf("%s: %w", key, plan.ErrTwice)
	}
	err := e.Validate() // which gives the fields their values
	p.secrets = p.secrets || e.HoldsSecrets()
	if p.index != nil {
		p.index.plan(e, kind)
		return errors.Join(err, p.Spend(0, len(e.Object.Namespace)+len(e.Object.Name)+len(e.Object.UID)))
	}
	if p.kept != nil {
		p.Entries = append(p.Entries, Entry{kind: kind})
		if inMemory := p.kept.Add(e); inMemory {
			return errors.Join(err, p.keep())
		}
		return errors.Join(err, p.Spend(0, len(e.Object.Namespace)+len(e.Object.Name)+len(e.Object.UID)))
	}
	e.Partial, e.Steps = p.common.Partial(e.Partial), diff.Share(&p.common, e.Steps)
	p.Entries = append(p.Entries, Entry{Entry: e, kind: kind})
	return err
}

func (p *parser) attempt(a *Attempt) error {
	if err := p.check(a.Entry, a.Subresource); err != nil {
		return err
	}
	err := a.Validate()
	if p.index != nil {
		p.index.attempt(a)
		return err
	}
	e := &p.Entries[a.Entry]
	if p.kept != nil {
		err = errors.Join(err, p.keep())
	}
	if p.briefly() {
		e.forget(a.Subresource)
	} else {
		a.Partial = p.common.Partial(a.Partial) // else very few stay
	}
	e.Attempts = append(e.Attempts, *a)
	if !slices.Contains(e.doubt, a.Subresource) {
		e.doubt = append(e.doubt, a.Subresource)
	}
	return err
}

func (p *parser) result(r *Result) error {
	if err := p.check(r.Entry, r.Subresource); err != nil {
		return err
	}
	err := r.Validate()
	if p.index != nil {
		p.index.result(r)
		return err
	}
	e := &p.Entries[r.Entry]
	if e.doubt = slices.DeleteFunc(e.doubt, func(s string) bool { return s == r.Subresource }); len(e.doubt) == 0 {
		e.doubt = nil
	}
	if p.briefly() {
		came := Result{Outcome: r.Outcome, Written: r.Written, Failed: r.Failed, Error: r.Error, More: r.More}
		e.Results = diff.Share(&p.common, append(slices.Clip(e.Results), came)) // as most entries have
		e.forget(r.Subresource)
		return errors.Join(err, p.Spend(0, len(r.Outcome)+len(r.Error)))
	}
	r.Partial = p.common.Partial(r.Partial)
	e.Results = append(e.Results, *r)
	if r.Written || r.Failed {
		e.settle(r)
	}
	return err
}

// forget forgets the attempts on an endpoint.
func (e *Entry) forget(subresource string) {
	e.Attempts = slices.DeleteFunc(e.Attempts, func(a Attempt) bool { return a.Subresource == subresource })
	if len(e.Attempts) == 0 {
		e.Attempts = nil
	}
}

// settle lets go of the objects of the attempts on an endpoint: what came of them is known. Most of it is what they were
// to do.
func (e *Entry) settle(r *Result) {
	for i := range e.Attempts {
		a := &e.Attempts[i]
		if a.Subresource != r.Subresource {
			continue
		}
		if a.Before, a.After = nil, nil; reflect.DeepEqual(a.Fields, r.Fields) {
			a.Fields = r.Fields
		}
	}
}

// check returns an error unless an entry has been planned, and may be sent to a subresource.
func (p *parser) check(entry int, subresource string) error {
	switch {
	case !p.Begun:
		return errOrder
	case entry < 0 || entry >= p.planned():
		return errNoSuchEntry
	case !p.brief && !sends(p.kind(entry), subresource): // a glance does not read of what kind the object is
		return errNoSuchPart
	}
	return nil
}

// planned is the number of entries.
func (p *parser) planned() int {
	if p.index != nil {
		return len(p.index.objects)
	}
	return len(p.Entries)
}

// kind is what the key of an entry has in common with those of its kind and namespace.
func (p *parser) kind(entry int) *engine.ObjectKey {
	if p.index != nil {
		return p.index.objects[entry].kind
	}
	return p.Entries[entry].kind
}
