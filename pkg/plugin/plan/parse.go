package plan

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/diff"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/memory"
)

// Parse reads the text of a plan, entry by entry, and checks that it holds together. The plan has to be closed. The error
// wraps ErrNoPlan or ErrDamaged, is an *OtherFormatError, or that of reading.
func Parse(in io.Reader) (*Plan, error) {
	v := &values{in: in}
	v.next()
	p := parser{values: v, text: json.NewDecoder(v), entries: &Entries{}, seen: engine.NewDigests[engine.ObjectKey](), searches: diff.Budget}
	out, err := p.plan()
	if err != nil {
		return nil, errors.Join(err, p.entries.Close())
	}
	return out, nil
}

// maxValue is how many bytes one entry has, or another field of the document, so that one without an end is not read.
const maxValue = 128 << 20

var errLongValue = fmt.Errorf("an entry, or another field, is larger than %d MiB", maxValue>>20)

// values reads a text as long as each of its values may become what memory there is for it.
type values struct {
	in     io.Reader
	left   int
	memory memory.Budget
}

// next is called before a value.
func (v *values) next() { v.left, v.memory = maxValue, memory.Budget{} }

// Read implements io.Reader.
func (v *values) Read(p []byte) (int, error) {
	n, err := v.in.Read(p)
	if v.left -= n; v.left < 0 {
		return 0, errLongValue
	}
	if err := v.memory.Spend(memory.Nodes(p[:n]), n); err != nil {
		return 0, err
	}
	return n, err
}

// parser reads a plan.
type parser struct {
	values   *values
	text     *json.Decoder // of the values
	head     bytes.Buffer  // the fields of the document but its entries, each with a comma
	entries  *Entries
	listed   bool // the entries were read
	seen     *engine.Digests[engine.ObjectKey]
	searches int           // what is left of diff.Budget
	memory   memory.Budget // for what is kept
}

func (p *parser) plan() (*Plan, error) {
	if err := p.document(); err != nil {
		return nil, err
	}
	if err := p.checkFormat(true); err != nil {
		return nil, err
	}
	var in planFile
	if err := p.readHead(&in); err != nil {
		return nil, err
	}
	out := &Plan{Run: in.Run, Summary: in.Summary.engine(), Incomplete: in.Incomplete, Entries: p.entries}
	if err := out.validate(); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	return out, out.recount()
}

// document reads the only value of the text.
func (p *parser) document() error {
	switch start, err := p.text.Token(); {
	case errors.Is(err, io.EOF):
		return ErrNoPlan
	case err != nil:
		return cut(err)
	case start != json.Delim('{'):
		return fmt.Errorf("%w: it is no JSON object", ErrDamaged)
	}
	for p.text.More() {
		if err := p.field(); err != nil {
			return err
		}
	}
	if _, err := p.text.Token(); err != nil {
		return cut(err)
	}
	if _, err := p.text.Token(); !errors.Is(err, io.EOF) {
		return fmt.Errorf("%w: something follows the plan", ErrDamaged)
	}
	return nil
}

// cut is an error of the text itself, unless it is one of reading it.
func cut(err error) error {
	if errors.Is(err, memory.ErrTooLarge) || errors.Is(err, errLongValue) {
		return err
	}
	return fmt.Errorf("%w or cut off: %w", ErrDamaged, err)
}

// field reads a name and its value.
func (p *parser) field() error {
	token, err := p.text.Token()
	if err != nil {
		return cut(err)
	}
	name, _ := token.(string) // a name is nothing else
	if strings.EqualFold(name, "entries") {
		return p.list()
	}
	var value json.RawMessage
	if err := p.read(&value); err != nil {
		return err
	}
	quoted, err := json.Marshal(name)
	if err == nil {
		err = p.memory.Spend(memory.Nodes(value)+1, len(quoted)+len(value))
	}
	p.head.Write(quoted)
	p.head.WriteByte(':')
	p.head.Write(value)
	p.head.WriteByte(',')
	return err
}

// read reads a value.
func (p *parser) read(value *json.RawMessage) error {
	p.values.next()
	if err := p.text.Decode(value); err != nil {
		return cut(err)
	}
	return nil
}

// readHead decodes what was read of the head.
func (p *parser) readHead(into any) error {
	text := append([]byte{'{'}, bytes.TrimSuffix(p.head.Bytes(), []byte(","))...)
	if err := json.Unmarshal(append(text, '}'), into); err != nil {
		return fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	return nil
}

// checkFormat checks that it is a plan, and one that this version reads, as far as that is known unless the whole head was read.
func (p *parser) checkFormat(whole bool) error {
	var head struct{ APIVersion, Kind string }
	if err := p.readHead(&head); err != nil {
		return err
	}
	if !whole && (head.APIVersion == "" || head.Kind == "") {
		return nil
	}
	if !strings.HasPrefix(head.APIVersion, group+"/") || head.Kind != Kind {
		return ErrNoPlan
	}
	if err := CheckFormat(head.APIVersion); err != nil {
		return fmt.Errorf("%w; make it again with preview --save", err)
	}
	return nil
}

// list reads the entries. A plan of another format, whose entries may be others, says so before them.
func (p *parser) list() error {
	if err := p.checkFormat(false); err != nil {
		return err
	}
	if p.listed {
		return fmt.Errorf("%w: it has two lists of entries", ErrDamaged)
	}
	p.listed = true
	switch start, err := p.text.Token(); {
	case err != nil:
		return cut(err)
	case start != json.Delim('['):
		return fmt.Errorf("%w: its entries are no list", ErrDamaged)
	}
	var text json.RawMessage
	for p.text.More() {
		if err := p.read(&text); err != nil {
			return err
		}
		if err := p.entry(text); err != nil {
			return err
		}
	}
	if _, err := p.text.Token(); err != nil {
		return cut(err)
	}
	return nil
}

// entry reads an entry.
func (p *parser) entry(text []byte) error {
	var e Entry
	if err := json.Unmarshal(text, &e); err != nil {
		return fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	err := e.validate(&p.searches)
	if err == nil && !p.seen.Add(e.Object.Named()) {
		err = fmt.Errorf("%s: %w", e.Object.Named(), ErrTwice)
	}
	if err != nil {
		return fmt.Errorf("%w: entry %d: %w", ErrDamaged, p.entries.Len(), err)
	}
	p.entries.add(text, &e)
	return nil
}
