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
	"slices"
	"strings"
	"unicode"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/file"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/write/plan"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/write/request"
)

// Journal is the record of a run as read from a file.
type Journal struct {
	Path    string
	Header  Header
	Entries []Entry
	// Begun reports that the planned entries are complete. Before that, nothing was written.
	Begun   bool
	Resumed []Resumed
	// End is nil if the run was cut off.
	End *End
	// Torn reports that the last line is incomplete, as after a kill.
	Torn bool

	size int64 // without a torn line
}

// Entry is an object of a run with its attempts and results.
type Entry struct {
	// Entry is the planned entry; nil in a Glance.
	*plan.Entry
	// Attempts has the last request to each endpoint with an unknown outcome, and Results the results in order.
	// In a Glance they only determine the Status.
	Attempts []Attempt
	Results  []Result
	// Applied reports that one of the requests was a server-side apply.
	Applied bool

	object     any      // its identity
	superseded bool     // a later run of the same watch planned another change of the object
	doubt      []string // subresources with an attempt but no later result
}

// Wrote reports whether the server stored a part of the entry.
func (e *Entry) Wrote() bool {
	return slices.ContainsFunc(e.Results, func(r Result) bool { return r.Written })
}

// Status is the progress of an entry in its run.
type Status string

// The statuses.
const (
	// Planned: nothing was sent yet.
	Planned Status = "planned"
	// InDoubt: a request was attempted, and whether the server stored it is not recorded. Doubt returns the
	// attempt.
	InDoubt Status = "in-doubt"
	// Partial: the object was written, but not yet its status.
	Partial Status = "partial"
	Done    Status = "done"
	Failed  Status = "failed"
	// Superseded: nothing was written, and a later entry of a watch is for the same object.
	Superseded Status = "superseded"
)

// Status returns the progress of the entry.
func (e *Entry) Status() Status {
	switch {
	case len(e.doubt) > 0:
		return InDoubt
	case e.superseded && !e.Wrote():
		return Superseded
	case len(e.Results) == 0:
		return Planned
	}
	switch last := e.Results[len(e.Results)-1]; {
	case last.Failed:
		return Failed
	case last.More && !e.superseded:
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

// Count counts the entries by status.
func (j *Journal) Count() map[Status]int {
	out := map[Status]int{}
	for i := range j.Entries {
		out[j.Entries[i].Status()]++
	}
	return out
}

var errLocked = errors.New("another run is writing to it")

// Read reads a journal that only the user can write. An incomplete last line, as after a kill, is skipped.
// The error is an *Error.
func Read(path string) (*Journal, error) {
	f, err := open(path, os.O_RDONLY)
	if err != nil {
		return nil, err
	}
	defer f.Close() //nolint:errcheck // it was only read
	return Parse(path, f)
}

// open opens a journal that only the user can write.
func open(path string, flags int) (*os.File, error) {
	f, err := os.OpenFile(path, flags, 0)
	if err != nil {
		return nil, &Error{Path: path, Err: errors.Unwrap(err)}
	}
	if err := file.CheckOwner(f); err != nil {
		_ = f.Close() // the returned error has priority
		return nil, &Error{Path: path, Err: err}
	}
	return f, nil
}

// Glance is Read without the contents of entries, attempts and results: it returns the run and the progress
// of its entries in a sixth of the time. History, undo latest and shell completion read every journal. It
// does not check who can write the journal.
func Glance(path string) (*Journal, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, &Error{Path: path, Err: errors.Unwrap(err)}
	}
	defer f.Close() //nolint:errcheck // it was only read
	p := parser{Journal: Journal{Path: path}, brief: true, seen: map[any]int{}}
	return p.parse(f)
}

// Parse reads a journal from in; path is only for messages.
func Parse(path string, in io.Reader) (*Journal, error) {
	p := parser{Journal: Journal{Path: path}, seen: map[any]int{}}
	return p.parse(in)
}

func (p *parser) parse(in io.Reader) (*Journal, error) {
	lines := bufio.NewReader(in)
	for number := 1; ; number++ {
		line, err := lines.ReadBytes('\n')
		switch {
		case errors.Is(err, io.EOF):
			p.Torn = p.Torn || len(line) > 0
			return p.finish(number)
		case err != nil:
			return nil, &Error{Path: p.Path, Err: err}
		}
		if err := p.line(line); err != nil {
			var notJSON *json.SyntaxError
			if _, end := lines.Peek(1); number > 1 && errors.Is(end, io.EOF) && errors.As(err, &notJSON) {
				p.Torn = true // a machine crash may leave garbage at the end
				return p.finish(number)
			}
			return nil, &Error{Path: p.Path, Line: number, Err: err}
		}
		p.size += int64(len(line))
	}
}

// parser builds a journal record by record.
type parser struct {
	Journal
	brief bool        // leave out the contents
	seen  map[any]int // the last entry of each object
	from  int         // the first entry of this run in a watch
}

func (p *parser) finish(lines int) (*Journal, error) {
	if p.size == 0 {
		return nil, &Error{Path: p.Path, Line: lines, Err: errors.New("not a journal")}
	}
	return &p.Journal, nil
}

// firstFormat is the format of journals whose header names none.
const firstFormat = "mutate.kubectl.dev/v1alpha1"

var (
	errOrder = errors.New("a record is out of order")
	errOneOf = errors.New("a line must be exactly one record")
)

// notOfID reports whether a character is invalid in an ID. With arbitrary characters, an ID could pose as
// another output line.
func notOfID(r rune) bool {
	return r != '-' && r != '_' && (r > unicode.MaxASCII || !unicode.IsLetter(r) && !unicode.IsDigit(r))
}

func (p *parser) line(text []byte) error {
	if p.size == 0 {
		if err := checkFormat(text); err != nil {
			return err
		}
	}
	if p.brief {
		return p.record(readBrief(text))
	}
	return p.record(readRecord(text))
}

// checkFormat rejects the header of an unknown format.
func checkFormat(text []byte) error {
	var r struct{ Header *struct{ APIVersion string } }
	if json.Unmarshal(text, &r) != nil || r.Header == nil {
		return nil // readRecord returns the error
	}
	err := plan.CheckFormat(cmp.Or(r.Header.APIVersion, firstFormat))
	if err != nil {
		return fmt.Errorf("%w; resume or undo the run with the version that made it", err)
	}
	return nil
}

func (p *parser) record(r *record, err error) error {
	if err != nil {
		return err
	}
	n := 0
	for _, set := range []bool{
		r.Header != nil, r.Planned != nil, r.Begin != nil, r.Attempt != nil,
		r.Result != nil, r.Resumed != nil, r.End != nil,
	} {
		if set {
			n++
		}
	}
	if n != 1 {
		return errOneOf
	}
	if first := p.size == 0; first != (r.Header != nil) {
		return errors.New("the first record must be the header")
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

func (p *parser) take(r *record) error {
	switch {
	case r.Header != nil:
		p.Header = *r.Header
		switch {
		case p.Header.FieldManager == "":
			return errors.New("the header names no field manager")
		case strings.ContainsFunc(p.Header.ID, notOfID):
			return errors.New("the header's ID is none: it has other characters than letters and digits")
		}
		return p.Header.Run.Validate()
	case r.Planned != nil:
		return p.plan(r.Planned, r.object)
	case r.Begin != nil:
		if p.Begun || r.Begin.Entries != len(p.Entries) {
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

// plan adds a planned entry. After the end of a run, it begins the next run of a watch.
func (p *parser) plan(e *plan.Entry, object string) error {
	switch {
	case p.End != nil:
		p.Begun, p.End, p.from = false, nil, len(p.Entries)
	case p.Begun:
		return errOrder
	}
	var key any = object
	if !p.brief {
		key = e.Object.Named()
	}
	if i, known := p.seen[key]; known {
		if i >= p.from {
			return fmt.Errorf("%s: %w", key, plan.ErrTwice)
		}
		p.Entries[i].superseded = true
	}
	p.seen[key] = len(p.Entries)
	if p.brief {
		p.Entries = append(p.Entries, Entry{object: key})
		return nil
	}
	p.Entries = append(p.Entries, Entry{Entry: e, object: key})
	return e.Validate() // which also sets the values of the fields
}

func (p *parser) attempt(a *Attempt) error {
	if err := p.check(a.Entry, a.Subresource); err != nil {
		return err
	}
	e := &p.Entries[a.Entry]
	e.settle(a.Subresource)
	e.Attempts, e.Applied = append(e.Attempts, *a), e.Applied || a.Method == request.Apply
	if !slices.Contains(e.doubt, a.Subresource) {
		e.doubt = append(e.doubt, a.Subresource)
	}
	return e.Attempts[len(e.Attempts)-1].Validate()
}

// result adds a result. A result without a write or a failure found the object as wanted, perhaps because of
// the attempt.
func (p *parser) result(r *Result) error {
	if err := p.check(r.Entry, r.Subresource); err != nil {
		return err
	}
	e := &p.Entries[r.Entry]
	e.doubt = slices.DeleteFunc(e.doubt, func(s string) bool { return s == r.Subresource })
	if r.Written || r.Failed {
		e.settle(r.Subresource)
	}
	e.Results = append(e.Results, *r)
	return e.Results[len(e.Results)-1].Validate()
}

// settle clears the doubt about attempts on an endpoint.
func (e *Entry) settle(subresource string) {
	e.Attempts = slices.DeleteFunc(e.Attempts, func(a Attempt) bool { return a.Subresource == subresource })
}

// check rejects a record without a planned entry, or with an impossible subresource.
func (p *parser) check(entry int, subresource string) error {
	switch {
	case !p.Begun:
		return errOrder
	case entry < 0 || entry >= len(p.Entries):
		return errors.New("no such entry")
	case p.brief, subresource == "": // a glance does not read the object's kind
		return nil
	}
	object := &p.Entries[entry].Object
	if subresource != object.Subresource &&
		(object.Subresource != "" || subresource != request.StatusSubresource) {
		return errors.New("its entry is not sent to that subresource")
	}
	return nil
}

// briefRecord is a record without contents, which the first format encoded differently.
type briefRecord struct {
	record
	Planned *struct {
		Object json.RawMessage `json:"object"`
	} `json:"planned"`
	Attempt *struct {
		Attempt
		noContents
	} `json:"attempt"`
	Result *struct {
		Result
		noContents
	} `json:"result"`
}

// noContents shadows the diff.Partial of a record.
type noContents struct {
	Before json.RawMessage `json:"before"`
	After  json.RawMessage `json:"after"`
	Fields json.RawMessage `json:"fields"`
}

func readBrief(text []byte) (*record, error) {
	var b briefRecord
	if err := json.Unmarshal(text, &b); err != nil {
		return nil, err
	}
	if b.Planned != nil {
		b.record.Planned, b.object = &plan.Entry{}, string(b.Planned.Object)
	}
	if b.Attempt != nil {
		b.record.Attempt = &b.Attempt.Attempt
	}
	if b.Result != nil {
		b.record.Result = &b.Result.Result
	}
	return &b.record, nil
}
